import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { selfTimes } from './self-times.ts'
import { runProgram } from './run-program.ts'

/**
 * `node --import tsx bench/profile.ts CASE [--journal] [--keep=FOLDER] [--top=N]`: where the time of a case
 * goes, by the functions themselves, for the coordinator and for each thread.
 */
const PROGRAMS: Record<string, [string, (string | number)[]]> = {
  flat: ['flat.mjs', [100_000, 'warm', 'barrier']],
  'flat-wait-on': ['flat.mjs', [100_000, 'warm', 'waitOn']],
  'flat-cold': ['flat.mjs', [100_000, 'cold', 'barrier']],
  chain: ['chain.mjs', [10_000, 'warm']],
  'chain-cold': ['chain.mjs', [10_000, 'cold']],
  'pending-10000': ['pending.mjs', [10_000, 100]],
  'pending-1000000': ['pending.mjs', [1_000_000, 1]],
}

const args = process.argv.slice(2)
const program = PROGRAMS[args.find(argument => !argument.startsWith('-')) ?? '']
const option = (name: string): string | undefined =>
  args.find(argument => argument.startsWith(`--${name}=`))?.slice(name.length + 3)

if (!program) {
  console.error('usage: node --import tsx bench/profile.ts CASE [--journal] [--keep=FOLDER] [--top=N]')
  console.error(`cases: ${Object.keys(PROGRAMS).join(', ')}`)
  process.exit(2)
}

const kept = option('keep')
const folder = kept ?? (await mkdtemp(join(tmpdir(), 'millrace-profile-')))
try {
  const result = await runProgram(...program, {
    journal: args.includes('--journal'),
    execArgv: ['--expose-gc'],
    env: { MILLRACE_BENCH_PROFILE: folder },
  })
  console.log(JSON.stringify(result))
  for (const name of (await readdir(folder)).sort()) {
    if (!name.endsWith('.cpuprofile')) continue
    console.log(`\n${name.replace('.cpuprofile', '')}`)
    const text = await readFile(join(folder, name), 'utf8')
    for (const line of selfTimes(text, Number(option('top') ?? 25))) console.log(`  ${line}`)
  }
} finally {
  if (kept === undefined) await rm(folder, { recursive: true, force: true })
}
