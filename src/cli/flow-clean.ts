import { rmSync, rmdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { MillraceError } from '../core/errors.ts'
import { lookAt } from '../flow/file-table.ts'
import { Makers } from '../flow/makers.ts'
import type { Registry } from '../flow/registry.ts'
import { takeStamp } from '../flow/stamp.ts'
import { State } from '../flow/state.ts'
import { NO_FILE } from '../flow/work.ts'
import { plural } from '../report/format.ts'
import { remark } from './output.ts'

/** Deletes what rules have made, but nothing that somebody has changed since; what is to be kept only with `force`. */
export async function clean(
  registry: Registry,
  targets: readonly string[] | null,
  force: boolean,
): Promise<void> {
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
        if (!look) continue
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
        rmSync(path, { recursive: true, force: true })
        removeEmpty(dirname(path))
        count++
      }
      if (!isLeft) state.remove(first)
    }
  } finally {
    state.close()
  }
  remark(`millrace: ${plural(count, 'file')} deleted`)
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
