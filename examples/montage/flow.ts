/**
 * A mosaic of n x n images with the programs of Montage: each image is brought into one projection, the
 * differences where images overlap tell how their backgrounds differ, and corrected images are added up, tile by
 * tile; the tiles are shrunk and joined.
 *
 *     millrace make -- n=4 size=300
 *
 * Montage writes the weights of an image beside it (_area.fits). Which images overlap is known only when the
 * table of overlaps is there: the rest of the rules is added then.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { expand, param, rule, sh, target } from 'millrace/flow'
import { fitTable, halved, placed, rows, someRows } from './tables.ts'
import { tile } from './tiles.ts'

const n = param('n', 3)
const size = param('size', 200)
/** Tiles across the mosaic. */
const across = param('tiles', Math.ceil(n / 2))

const places = Array.from({ length: n }, (_, i) => String(i))
const images = (folder: string): string[] =>
  expand(`work/${folder}/{row}_{column}.fits`, { row: places, column: places })

rule('work/raw/{row}_{column}.fits', [], { name: 'image', uses: [n, size] }, async ({ out, wildcards }) => {
  await writeFile(out, tile(Number(wildcards.row), Number(wildcards.column), n, size))
})

rule('work/raw.tbl', images('raw'), { name: 'mImgtbl' }, ({ out }) => sh`mImgtbl work/raw ${out}`)

rule('work/region.hdr', 'work/raw.tbl', { name: 'mMakeHdr' }, ({ out, in: table }) => [
  'mMakeHdr',
  table,
  out,
])

rule(
  ['work/p/{image}.fits', 'work/p/{image}_area.fits'],
  ['work/raw/{image}.fits', 'work/region.hdr'],
  { name: 'mProjectPP' },
  ({ out: [image], in: [raw, region] }) => sh`mProjectPP ${raw} ${image} ${region}`,
)

rule('work/p.tbl', images('p'), { name: 'mImgtbl' }, ({ out }) => sh`mImgtbl work/p ${out}`)

rule('work/overlaps.tbl', 'work/raw.tbl', { name: 'mOverlaps' }, ({ out, in: table }) => [
  'mOverlaps',
  table,
  out,
])

rule(
  ['work/d/{plus}-{minus}.fits', 'work/d/{plus}-{minus}_area.fits'],
  [
    'work/p/{plus}.fits',
    'work/p/{minus}.fits',
    'work/region.hdr',
    'work/p/{plus}_area.fits',
    'work/p/{minus}_area.fits',
  ],
  { name: 'mDiff' },
  ({ out: [image], in: [plus, minus, region] }) => ['mDiff', plus, minus, image, region],
)

rule(
  'work/d/{pair}.fit',
  'work/d/{pair}.fits',
  { name: 'mFitplane' },
  ({ out, in: image }) => sh`mFitplane ${image} > ${out}`,
)

// Tiles overlap by a few pixels, so that shrinking leaves no seam.
rule(
  'work/t/{x}_{y}.hdr',
  'work/region.hdr',
  { name: 'mTileHdr' },
  ({ out, in: region, wildcards: { x, y } }) =>
    sh`mTileHdr ${region} ${out} ${across} ${across} ${x} ${y} 8 8`,
)

target('mosaic', async ({ need }) => {
  await need('work/overlaps.tbl')
  const pairs = rows('work/overlaps.tbl').map(([, , plus = '', minus = '']) => ({ plus, minus }))
  const fits = pairs.map(({ plus, minus }) => `work/d/${plus}-${minus}.fit`.replaceAll('.fits', ''))
  rule(
    'work/fits.tbl',
    ['work/p.tbl', ...fits],
    { name: 'collect', uses: pairs },
    async ({ out, in: [table, ...files] }) => {
      const printed = await Promise.all(files.map(file => readFile(file, 'utf8')))
      const ids = new Map(rows(table).map(row => [row.at(-1), row[0] ?? '']))
      const ofPair = pairs.map(({ plus, minus }, i) => ({
        plus: ids.get(plus) ?? '',
        minus: ids.get(minus) ?? '',
        printed: printed[i] ?? '',
      }))
      await writeFile(out, fitTable(ofPair))
    },
  )

  await need('work/corrections.tbl')
  const planes = new Map(rows('work/corrections.tbl').map(([id, ...plane]) => [id, plane]))
  const planeOf = new Map(rows('work/p.tbl').map(row => [row.at(-1), planes.get(row[0]) ?? ['0', '0', '0']]))
  rule(
    ['work/c/{image}.fits', 'work/c/{image}_area.fits'],
    ['work/p/{image}.fits', 'work/p/{image}_area.fits'],
    { name: 'mBackground' },
    ({ out: [corrected], in: [projected], wildcards: { image } }) => [
      'mBackground',
      projected,
      corrected,
      ...(planeOf.get(`${image}.fits`) ?? []),
    ],
  )

  // A corrected image lies where the projected one does: which images a tile needs is known before they are there.
  const tiles = Array.from({ length: across ** 2 }, (_, i) => `${i % across}_${Math.floor(i / across)}`)
  const imagesOf = (tile: string) => placed('work/p.tbl', 'work/region.hdr', across, tile)
  rule(
    'work/t/{tile}.tbl',
    'work/p.tbl',
    { name: 'rows', uses: ({ tile }: { tile: string }) => imagesOf(tile) },
    async ({ out, in: table, wildcards: { tile } }) => {
      await writeFile(out, someRows(table, imagesOf(tile)))
    },
  )
  rule(
    ['work/t/{tile}.fits', 'work/t/{tile}_area.fits'],
    ({ tile }) => [
      `work/t/${tile}.tbl`,
      `work/t/${tile}.hdr`,
      ...imagesOf(tile).flatMap(image => [
        `work/c/${image}`,
        `work/c/${image.replace('.fits', '_area.fits')}`,
      ]),
    ],
    { name: 'mAdd' },
    ({ out: [image], in: [table = '', region = ''] }) => ['mAdd', '-p', 'work/c', table, region, image],
  )
  joinTiles(tiles.filter(tile => imagesOf(tile).length > 0).map(tile => `work/s/${tile}.fits`))
  await need('mosaic.png')
})

rule(
  'work/corrections.tbl',
  ['work/p.tbl', 'work/fits.tbl'],
  { name: 'mBgModel' },
  ({ out, in: [table, planes] }) => ['mBgModel', table, planes, out],
)

rule('work/s/{tile}.fits', 'work/t/{tile}.fits', { name: 'mShrink' }, ({ out, in: image }) => [
  'mShrink',
  image,
  out,
  2,
])

rule('work/s.hdr', 'work/region.hdr', { name: 'half' }, async ({ out, in: region }) => {
  await writeFile(out, halved(region))
})

function joinTiles(shrunk: readonly string[]): void {
  rule('work/s.tbl', shrunk, { name: 'mImgtbl' }, ({ out }) => sh`mImgtbl work/s ${out}`)
  rule(
    'work/mosaic.fits',
    ['work/s.tbl', 'work/s.hdr', ...shrunk],
    { name: 'last mAdd' },
    ({ out, in: [table, region] }) => ['mAdd', '-n', '-p', 'work/s', table, region, out],
  )
}

rule(
  'mosaic.png',
  'work/mosaic.fits',
  { name: 'mViewer' },
  ({ out, in: image }) => sh`mViewer -ct 1 -gray ${image} -1s max gaussian-log -out ${out}`,
)

/** Without the images themselves: to look at the rest alone. */
target('inputs', [...images('raw'), 'work/region.hdr', 'work/overlaps.tbl'])
