/**
 * A mosaic of n x n images with the programs of Montage: each image is brought into one projection, the
 * differences where images overlap tell how their backgrounds differ, and corrected images are added up.
 *
 *     millrace make -- n=4 size=300
 *
 * Montage writes the weights of an image beside it (_area.fits). Which images overlap is known only when the
 * table of overlaps is there: the rest of the rules is added then.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { expand, param, rule, sh, target } from 'millrace/flow'
import { fitTable, rows } from './tables.ts'
import { tile } from './tiles.ts'

const n = param('n', 3)
const size = param('size', 200)

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
  await need('mosaic.png')
})

rule(
  'work/corrections.tbl',
  ['work/p.tbl', 'work/fits.tbl'],
  { name: 'mBgModel' },
  ({ out, in: [table, planes] }) => ['mBgModel', table, planes, out],
)

rule('work/c.tbl', images('c'), { name: 'mImgtbl' }, ({ out }) => sh`mImgtbl work/c ${out}`)

rule(
  ['work/mosaic.fits', 'work/mosaic_area.fits'],
  ['work/c.tbl', 'work/region.hdr', ...images('c')],
  { name: 'mAdd' },
  ({ out: [image], in: [table, region] }) => sh`mAdd -p work/c ${table} ${region} ${image}`,
)

rule('work/small.fits', 'work/mosaic.fits', { name: 'mShrink' }, ({ out, in: image }) => [
  'mShrink',
  image,
  out,
  '2',
])

rule(
  'mosaic.png',
  'work/small.fits',
  { name: 'mViewer' },
  ({ out, in: image }) => sh`mViewer -ct 1 -gray ${image} -1s max gaussian-log -out ${out}`,
)
