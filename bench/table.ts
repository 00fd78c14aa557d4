import type { Case, Row } from './harness.ts'
import { describeVerdict } from './goals.ts'
import type { Verdict } from './goals.ts'
import { show } from './numbers.ts'

export function printCase(
  { name, about, unit, take }: Case,
  rows: readonly Row[],
  verdicts: readonly ({ text: string } & Verdict)[],
): void {
  console.log(`\n${name}: ${about}`)
  const lines = [['system', `${take}, ${unit}`, 'range (samples)', 'millrace against it']]
  for (const row of rows) {
    lines.push(
      row.missing === null
        ? [row.system, show(row.value), row.spread, show(row.ratio)]
        : [row.system, '-', `missing: ${row.missing}`, '-'],
    )
  }
  const widths = (lines[0] as string[]).map((_, i) => Math.max(...lines.map(line => line[i]?.length ?? 0)))
  for (const line of lines) {
    const cells = line.map((cell, i) =>
      i === 1 || i === 3 ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
    )
    console.log(`  ${cells.join('   ')}`.trimEnd())
  }
  for (const { text, ...verdict } of verdicts) console.log(`  goal: ${text}: ${describeVerdict(verdict)}`)
}
