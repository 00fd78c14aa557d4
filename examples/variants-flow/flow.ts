/**
 * Variants of made-up samples against a made-up genome, with bwa, samtools and bcftools:
 *
 *     millrace make -- samples=4 length=20000
 */
import { writeFile } from 'node:fs/promises'
import { expand, param, rule, sh, target, temp } from 'millrace/flow'

const samples = param('samples', 3)
const length = param('length', 20_000)
const reads = param('reads', 4000)
const names = Array.from({ length: samples }, (_, i) => `s${i + 1}`)

rule('work/genome.fa', [], { name: 'genome', uses: length }, async ({ out }) => {
  let state = 7
  const base = (): string => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return 'ACGT'[state >>> 30] as string
  }
  const text = Array.from({ length }, base).join('')
  await writeFile(out, `>chr1\n${text.replaceAll(/.{60}/g, '$&\n')}\n`)
})

rule(
  expand('work/genome.fa.{end}', { end: ['amb', 'ann', 'bwt', 'pac', 'sa'] }),
  'work/genome.fa',
  { name: 'index' },
  ({ out: [first = ''], in: genome }) => sh`bwa index -p ${first.replace(/\.amb$/, '')} ${genome}`,
)

rule(
  [temp('work/{sample}.1.fq'), temp('work/{sample}.2.fq')],
  'work/genome.fa',
  { name: 'sequence' },
  ({ out: [one, two], in: genome, wildcards: { sample } }) =>
    sh`wgsim -S ${sample.slice(1)} -N ${reads} -1 100 -2 100 -r 0.005 ${genome} ${one} ${two} > /dev/null`,
)

rule(
  'work/{sample}.bam',
  ['work/genome.fa', 'work/{sample}.1.fq', 'work/{sample}.2.fq', 'work/genome.fa.bwt'],
  { name: 'align' },
  ({ out, in: [genome, one, two], wildcards: { sample } }) =>
    sh`bwa mem -R ${`@RG\\tID:${sample}\\tSM:${sample}`} ${genome} ${one} ${two} | samtools sort -o ${out} -`,
)

rule(
  'work/{sample}.bam.bai',
  'work/{sample}.bam',
  { name: 'bai' },
  ({ out, in: bam }) => sh`samtools index ${bam} ${out}`,
)

rule(
  'work/{sample}.vcf.gz',
  ['work/genome.fa', 'work/{sample}.bam', 'work/{sample}.bam.bai'],
  { name: 'call' },
  ({ out, in: [genome, bam] }) =>
    sh`bcftools mpileup -f ${genome} ${bam} | bcftools call -mv -Oz -o ${out} - && bcftools index ${out}`,
)

rule(
  'variants.txt',
  expand('work/{sample}.vcf.gz', { sample: names }),
  { name: 'count' },
  ({ out, in: calls }) =>
    sh`for calls in ${calls}; do echo "$calls $(bcftools view -H "$calls" | wc -l)"; done > ${out}`,
)

target('variants', ['variants.txt'])
