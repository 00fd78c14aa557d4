import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { bench } from './harness.ts'
import { bin, missing, root, run } from './flow/timed.ts'

/** Samples, and pairs of reads of each. */
const SAMPLES = 6
const PAIRS = 10_000
const GENOME = 200_000

const samples = Array.from({ length: SAMPLES }, (_, i) => `s${i}`)

const FLOW = `import { expand, rule, sh, target } from 'millrace/flow'
const samples = ${JSON.stringify(samples)}
rule('bam/{s}.bam', ['ref.fa', 'reads/{s}_1.fq', 'reads/{s}_2.fq'],
  ({ out, in: [ref, one, two] }) => sh\`bwa mem -t 1 \${ref} \${one} \${two} 2> /dev/null | samtools sort -T \${out}.part -o \${out} - 2> /dev/null\`)
rule(['bam/{s}.bam.bai'], ['bam/{s}.bam'], ({ out, in: [bam] }) => sh\`samtools index -o \${out} \${bam}\`)
rule('vcf/{s}.vcf', ['ref.fa', 'bam/{s}.bam', 'bam/{s}.bam.bai'],
  ({ out, in: [ref, bam] }) => sh\`bcftools mpileup -f \${ref} \${bam} 2> /dev/null | bcftools call -mv -o \${out} -\`)
target('all', expand('vcf/{s}.vcf', { s: samples }))
`

const MAKE = `all: ${samples.map(s => `vcf/${s}.vcf`).join(' ')}
.SECONDARY:
bam/%.bam: ref.fa reads/%_1.fq reads/%_2.fq
	bwa mem -t 1 $^ 2> /dev/null | samtools sort -T $@.part -o $@ - 2> /dev/null
bam/%.bam.bai: bam/%.bam
	samtools index -o $@ $<
vcf/%.vcf: ref.fa bam/%.bam bam/%.bam.bai
	bcftools mpileup -f ref.fa bam/$*.bam 2> /dev/null | bcftools call -mv -o $@ -
`

const SNAKE = `samples = ${JSON.stringify(samples)}
rule all:
    input: expand("vcf/{s}.vcf", s=samples)
rule align:
    input: "ref.fa", "reads/{s}_1.fq", "reads/{s}_2.fq"
    output: "bam/{s}.bam"
    shell: "bwa mem -t 1 {input} 2> /dev/null | samtools sort -T {output}.part -o {output} - 2> /dev/null"
rule index:
    input: "bam/{s}.bam"
    output: "bam/{s}.bam.bai"
    shell: "samtools index -o {output} {input}"
rule call:
    input: "ref.fa", "bam/{s}.bam", "bam/{s}.bam.bai"
    output: "vcf/{s}.vcf"
    shell: "bcftools mpileup -f {input[0]} {input[1]} 2> /dev/null | bcftools call -mv -o {output} -"
`

let folder: string | null = null

/** Reads and the index of the genome are there; nothing is made of them yet. */
function prepared(): string {
  folder ??= generated()
  for (const name of ['bam', 'vcf', '.millrace', '.snakemake'])
    rmSync(join(folder, name), { recursive: true, force: true })
  for (const name of ['bam', 'vcf']) mkdirSync(join(folder, name))
  return folder
}

function generated(): string {
  const made = mkdtempSync(join(tmpdir(), 'millrace-genomics-'))
  process.on('exit', () => rmSync(made, { recursive: true, force: true }))
  for (const name of ['reads', 'node_modules']) mkdirSync(join(made, name))
  symlinkSync(root, join(made, 'node_modules', 'millrace'))
  writeFileSync(join(made, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(made, 'flow.ts'), FLOW)
  writeFileSync(join(made, 'Makefile'), MAKE)
  writeFileSync(join(made, 'Snakefile'), SNAKE)
  let seed = 7
  const letters = Array.from({ length: GENOME }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return 'ACGT'[seed >>> 30]
  })
  const lines = letters.join('').match(/.{1,60}/g) ?? []
  writeFileSync(join(made, 'ref.fa'), `>chr1\n${lines.join('\n')}\n`)
  const script = [
    'bwa index ref.fa',
    'samtools faidx ref.fa',
    ...samples.map(
      (s, i) => `wgsim -S ${i + 1} -N ${PAIRS} -1 100 -2 100 ref.fa reads/${s}_1.fq reads/${s}_2.fq`,
    ),
  ].join(' && ')
  const { status, stderr } = spawnSync('sh', ['-c', script], { cwd: made, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return made
}

const unavailable = ['python3', 'bwa', 'samtools', 'bcftools', 'wgsim'].map(missing).find(Boolean)
const arm = (system: string, words: readonly string[], own?: string) => ({
  system,
  missing: unavailable ?? own,
  run: async () => run(prepared(), words).took / 1000,
})

const OURS = 'millrace make'
await bench('genomics', [
  {
    name: 'genomics',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 5,
    about: `reads of ${SAMPLES} samples are aligned by bwa, sorted and indexed by samtools, and called by bcftools, two at a time`,
    arms: [
      arm(OURS, [process.execPath, bin, 'make', 'all', '-j', '2']),
      arm('Snakemake', ['snakemake', '--quiet', 'all', '-j2', 'all'], missing('snakemake')),
      arm('make', ['make', '-s', '-j', '2', 'all'], missing('make')),
    ],
    goals: [
      { of: OURS, against: 'Snakemake', atMost: 1, orTie: true },
      { of: OURS, against: 'make', atMost: 1, orTie: true },
    ],
  },
])
