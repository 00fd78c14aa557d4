import { rmSync, rmdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { lookAt } from '../../flow/state/file-table.ts'
import { Makers } from '../../flow/plan/makers.ts'
import type { Registry } from '../../flow/language/registry.ts'
import { takeStamp } from '../../flow/state/stamp.ts'
import { State } from '../../flow/state/state.ts'
import { NO_FILE } from '../../flow/plan/work.ts'
import { plural } from '../../report/format.ts'
import { printLines, remark } from '../output.ts'

interface CleanOptions {
  /** All files that rules have made, when null. */
  readonly targets: readonly string[] | null
  /** Also what is marked as kept. */
  readonly force: boolean
  /** Only say what would be deleted. */
  readonly isDry: boolean
}

/** Deletes what rules have made, but nothing that was changed since, and the folders that are empty then. */
export async function clean(registry: Registry, { targets, force, isDry }: CleanOptions): Promise<void> {
  const state = new State(resolve('.millrace'))
  const { files, records } = state
  const makers = new Makers(registry, files, records)
  const chosen = targets && closure(targets, registry, makers, state)
  state.open()
  let count = 0
  try {
    for (const { outputs, outputStamps } of records.all()) {
      const [first = 0] = outputs
      if (chosen && !outputs.some(output => chosen.has(output))) continue
      const maker = makers.of(first)
      let isLeft = false
      for (const [i, output] of outputs.entries()) {
        const path = files.path(output)
        const look = lookAt(path)
        if (!look) {
          // A temporary file is gone already; its folder may be left.
          if (!isDry) removeEmpty(dirname(path))
          continue
        }
        const marks = maker?.rule.outputs[i]?.marks
        const isKept = marks?.keep === true && !force
        const isTaken = files.isTaken(output)
        files.see(output, look)
        const isOurs =
          files.isAsStamped(output) ||
          (await takeStamp(path, look, files.stamped(output))) === outputStamps[i]
        if (isKept || isTaken || !isOurs) {
          isLeft = true
          const why = isKept
            ? `it is marked ${marks?.protect ? 'protect' : 'keep'}()`
            : isTaken
              ? 'it was not made, but taken with --touch'
              : 'it was changed after it was made'
          remark(`  ${path} stays: ${why}`)
          continue
        }
        count++
        if (isDry) {
          printLines([path])
          continue
        }
        rmSync(path, { recursive: true, force: true })
        removeEmpty(dirname(path))
      }
      if (!isLeft && !isDry) state.remove(first)
    }
  } finally {
    state.close()
  }
  remark(`millrace: ${plural(count, 'file')} ${isDry ? 'would be ' : ''}deleted`)
}

function removeEmpty(folder: string): void {
  const here = process.cwd()
  for (let path = resolve(folder); path.startsWith(`${here}/`); path = dirname(path)) {
    try {
      rmdirSync(path)
    } catch {
      return
    }
  }
}

/** All files that are made for these targets. */
function closure(
  targets: readonly string[],
  registry: Registry,
  makers: Makers,
  { files }: State,
): Set<number> {
  const found = new Set<number>()
  const wanted = registry.resolve(targets)
  const [body] = wanted.bodies
  if (body) {
    throw new MillraceError('MR_FLOW_FILE', `what target ${body.name} needs is known only when it runs`, {
      hint: 'Name files, or clean everything: millrace make --clean',
    })
  }
  const open = wanted.files.map(file => files.id(file))
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (found.has(file)) continue
    const work = makers.of(file)
    if (!work) continue
    for (const output of work.outputs) found.add(output)
    for (const input of work.inputs) if (input !== NO_FILE && !found.has(input)) open.push(input)
  }
  return found
}
