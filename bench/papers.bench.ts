import { algebraRows } from './papers/algebra.ts'
import { capioRows } from './papers/capio.ts'
import { copyfileRows } from './papers/copyfile.ts'
import { eagerRows } from './papers/eager.ts'
import { eagerFigures } from './papers/eager-figures.ts'
import { heterogeneousRows } from './papers/heterogeneous.ts'
import { hmmerRows } from './papers/hmmer.ts'
import { kmeansRows } from './papers/kmeans.ts'
import { learningRows } from './papers/learning.ts'
import { montageRows } from './papers/montage.ts'
import { montageFigures } from './papers/montage-figures.ts'
import { mpiRows } from './papers/mpi.ts'
import { verdictOf } from './papers/rows.ts'
import type { Row } from './papers/rows.ts'
import { describe, sensitivity } from './papers/sensitivity.ts'
import type { Dependence, Parts } from './papers/sensitivity.ts'
import { tiersRows } from './papers/tiers.ts'
import { variantsRows } from './papers/variants.ts'

/**
 * Every experiment of the papers, simulated: what they found, what we find, and where the two differ. With
 * `--sensitivity [CONSTANT or PART…]`: which of these depend on what the papers do not state, and how far.
 */
const PARTS: Parts = {
  copyfile: copyfileRows,
  montage: async () => [...(await montageRows()), ...(await montageFigures())],
  hmmer: hmmerRows,
  variants: variantsRows,
  learning: learningRows,
  kmeans: kmeansRows,
  tiers: tiersRows,
  eager: async () => [...(await eagerRows()), ...(await eagerFigures())],
  mpi: mpiRows,
  capio: capioRows,
  algebra: async () => [...(await algebraRows()), ...(await heterogeneousRows())],
}

const asJson = process.argv.includes('--json')
const filters = process.argv.slice(2).filter(word => !word.startsWith('-'))
const COLUMNS = ['experiment', 'paper', 'ours', 'off', 'better', 'turning'] as const
const rows: Row[] = []
if (process.argv.includes('--sensitivity')) {
  await showSensitivity()
  process.exit()
}
for (const [name, part] of Object.entries(PARTS)) {
  if (filters.length > 0 && !filters.includes(name)) continue
  const found = await part()
  rows.push(...found)
  if (!asJson) continue
  for (const row of found) {
    const { experiment, ...facts } = row
    console.log(
      JSON.stringify({
        bench: 'papers',
        case: experiment,
        system: 'millrace',
        verdict: verdictOf(row),
        ...facts,
      }),
    )
  }
}
if (!asJson) {
  const widths = COLUMNS.map(column =>
    Math.max(column.length, ...rows.map(row => (row[column] ?? '').length)),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  console.log(line([...COLUMNS]) + '  met')
  for (const row of rows) {
    console.log(line(COLUMNS.map(column => row[column] ?? '')) + `  ${verdictOf(row)}`)
  }
}

/** As they come: all of it takes a quarter of an hour. */
async function showSensitivity(): Promise<void> {
  let own: Dependence[] = []
  const show = (): void => {
    if (!asJson) for (const line of describe(own)) console.log(line)
    own = []
  }
  for await (const one of sensitivity(PARTS, filters)) {
    if (own[0] && own[0].constant !== one.constant) show()
    own.push(one)
    if (asJson) console.log(JSON.stringify({ bench: 'papers', system: 'millrace', ...one }))
  }
  show()
}
