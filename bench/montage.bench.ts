import { spawnSync } from 'node:child_process'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { ExampleOnDisk } from './example-run.ts'
import type { ExampleRun } from './example-run.ts'
import { SlowDisk, slowDiskMissing } from './slow-disk.ts'

/** MB/s: reading is what a cache spares, and on storage that many share it is the slower of the two. */
const READ = 18
const WRITE = 60

interface Size {
  /** Images across, and their pixels. */
  readonly n: number
  readonly size: number
  /** Megabytes for the commands and their files together; mBgModel alone takes 135, mAdd 75. */
  readonly memory: number
  readonly rounds: number
  /** How much faster than FIFO. */
  readonly goal: number
  /** Nothing but the noise of the machine is between them, so orders are also compared without it. */
  readonly allFits: boolean
}

/** In the second, projected images alone exceed what is left for files, and all intermediate files do three times. */
const SIZES: readonly Size[] = [
  { n: 3, size: 250, memory: 500, rounds: 12, goal: 1, allFits: true },
  { n: 8, size: 450, memory: 260, rounds: 1, goal: 1.5, allFits: false },
]
const POLICIES = ['lifo+hrf', 'fifo', 'lifo', 'rank']
const MADE = ['p', 'p.tbl', 'd', 'c', 't', 's', 's.tbl', 'fits.tbl', 'corrections.tbl', 'mosaic.fits']

const missing =
  slowDiskMissing() ??
  (spawnSync('which', ['mProjectPP']).status === 0 ? undefined : 'the package montage is not installed')

/** Raw images are there before the clock starts, as the paper's were. */
class Bed {
  readonly #disk: SlowDisk
  readonly #example: Promise<ExampleOnDisk>
  readonly #args: string[]
  readonly #runs = new Map<string, ExampleRun[]>()
  readonly #isSimulated: boolean
  /** By round: what all its runs take together under each policy in a simulation. */
  readonly #simulated: number[][] = []

  constructor({ n, size, memory, allFits }: Size) {
    this.#isSimulated = allFits
    this.#args = [`n=${n}`, `size=${size}`]
    this.#disk = new SlowDisk({ megabytes: 1300, read: READ, write: WRITE, memory: memory * 1e6 })
    this.#example = this.#install()
  }

  async #install(): Promise<ExampleOnDisk> {
    const example = await ExampleOnDisk.install(this.#disk, 'montage')
    example.make('inputs', 'fifo', this.#args, 2, false)
    return example
  }

  /** Times, utilization and hit rates are of the same runs. */
  async run(policy: string, round: number): Promise<ExampleRun> {
    const example = await this.#example
    const runs = this.#runs.get(policy) ?? []
    this.#runs.set(policy, runs)
    const known = runs[round]
    if (known) return known
    example.clean(...MADE.map(name => `work/${name}`), 'mosaic.png')
    const run = example.measure('mosaic', policy, this.#args)
    runs.push(run)
    if (this.#isSimulated) {
      const sums = (this.#simulated[round] ??= POLICIES.map(() => 0))
      for (const [i, seconds] of example.simulate(POLICIES).entries()) sums[i] = (sums[i] ?? 0) + seconds
    }
    return run
  }

  /** Each task takes as long under each policy as it did in the runs of that round. */
  async simulated(policy: string, round: number): Promise<number> {
    for (const one of POLICIES) await this.run(one, round)
    return (this.#simulated[round] as number[])[POLICIES.indexOf(policy)] as number
  }

  close(): void {
    this.#disk.close()
  }
}

const beds = new Map<Size, Bed>()

function bedOf(which: Size): Bed {
  let bed = beds.get(which)
  if (!bed) {
    for (const other of beds.values()) other.close()
    beds.set(which, (bed = new Bed(which)))
  }
  return bed
}

const cases = SIZES.flatMap((which): Case[] => {
  const { n, size, memory, rounds, goal, allFits } = which
  const armsBy = (value: (bed: Bed, policy: string, round: number) => Promise<number>) =>
    POLICIES.map(policy => {
      let round = 0
      return { system: `millrace ${policy}`, missing, run: () => value(bedOf(which), policy, round++) }
    })
  const arms = (value: (run: ExampleRun) => number) =>
    armsBy(async (bed, policy, round) => value(await bed.run(policy, round)))
  const name = `${n} x ${n}`
  const about = `images of ${size} x ${size}, commands with ${memory} MB of memory; read ${READ}, write ${WRITE} MB/s`
  const shared = { take: 'median' as const, rounds, about }
  const best = POLICIES.slice(1).map(policy => ({
    of: `millrace ${policy}`,
    against: 'millrace lifo+hrf',
    atLeast: policy === 'fifo' ? goal : 1,
    ...(allFits ? { orTie: true as const } : {}),
  }))
  const share = (what: string, value: (run: ExampleRun) => number): Case => ({
    name: `${name}: ${what}`,
    unit: '%',
    better: 'higher',
    ...shared,
    arms: arms(one => 100 * value(one)),
  })
  return [
    { name, unit: 's', better: 'lower', ...shared, arms: arms(({ seconds }) => seconds), goals: best },
    share('core utilization', ({ utilization }) => utilization),
    share('page-cache hits', ({ hitRate }) => hitRate),
    ...(allFits
      ? [
          {
            name: `${name}: order alone`,
            unit: 's',
            better: 'lower' as const,
            ...shared,
            about: 'simulated: tasks take what they took in the runs above, so that only their order differs',
            arms: armsBy((bed, policy, round) => bed.simulated(policy, round)),
            // It explains what is measured above, and shows differences that no user would notice.
            goals: [],
          },
        ]
      : []),
  ]
})
await bench('montage', cases)
for (const bed of beds.values()) bed.close()
