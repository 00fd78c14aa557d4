import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'

/** One rule of a random workflow; inputs are numbers of sources (negative, from -1) or of earlier tasks. */
export interface RandomTask {
  readonly id: number
  readonly outputs: readonly string[]
  readonly inputs: readonly number[]
  readonly form: 'shell' | 'argv' | 'function'
}

export interface RandomFlow {
  readonly sources: readonly string[]
  readonly tasks: readonly RandomTask[]
}

/** Names that break whatever is not quoted. */
const ODD = [
  'a b',
  "it's",
  '"q"',
  '-dash',
  'new\nline',
  'dollar$x',
  'star*',
  'ünï',
  '{brace}',
  'semi;colon',
  '日本',
  'back\\slash',
  '#hash',
]

export const randomFlow = fc
  .record({
    sources: fc.integer({ min: 1, max: 4 }),
    shape: fc.array(
      fc.record({
        inputs: fc.array(fc.nat(), { minLength: 0, maxLength: 3 }),
        outputs: fc.integer({ min: 1, max: 2 }),
        form: fc.constantFrom('shell' as const, 'argv' as const, 'function' as const),
      }),
      { minLength: 1, maxLength: 14 },
    ),
    odd: fc.nat(),
  })
  .map(({ sources, shape, odd }): RandomFlow => {
    const name = (kind: string, i: number): string => `${kind}${i % 3}/${ODD[(i + odd) % ODD.length]}-${i}`
    return {
      sources: Array.from({ length: sources }, (_, i) => (i === 0 ? '-first source' : name('s', i))),
      tasks: shape.map(({ inputs, outputs, form }, id) => ({
        id,
        form: outputs > 1 ? ('shell' as const) : form,
        outputs: Array.from({ length: outputs }, (_, i) => name('t', id * 2 + i)),
        inputs: [...new Set(inputs.map(one => (one % (sources + id)) - sources))],
      })),
    }
  })

const pathsOf = (flow: RandomFlow, input: number): readonly string[] =>
  input < 0 ? [flow.sources[-input - 1] as string] : (flow.tasks[input]?.outputs ?? [])

/** What each file holds when the workflow is run in sequence. `salt` is part of the commands. */
export function runInSequence(
  flow: RandomFlow,
  sources: ReadonlyMap<string, string>,
  salt: ReadonlyMap<number, string>,
): Map<string, string> {
  const files = new Map(sources)
  for (const task of flow.tasks) {
    const read = task.inputs.flatMap(input => pathsOf(flow, input)).map(path => files.get(path) ?? '')
    for (const [i, path] of task.outputs.entries()) {
      files.set(path, `${task.id}${salt.get(task.id) ?? ''}.${i}\n${read.join('')}`)
    }
  }
  return files
}

/** The workflow as a file of rules. Each task notes in `ran` that it was run. */
export function writeFlow(
  folder: string,
  flow: RandomFlow,
  salt: ReadonlyMap<number, string>,
  pause = ':',
  temps: ReadonlySet<string> = new Set(),
): void {
  const quote = (path: string): string => JSON.stringify(path.replaceAll('{', '{{').replaceAll('}', '}}'))
  const rules = flow.tasks.map(({ id, outputs, inputs, form }) => {
    const read = inputs.flatMap(input => pathsOf(flow, input))
    const made = outputs.map(path => (temps.has(path) ? `temp(${quote(path)})` : quote(path)))
    const files = `[${made.join(', ')}], [${read.map(quote).join(', ')}]`
    const text = `${id}${salt.get(id) ?? ''}`
    if (form === 'function') return `rule(${files}, work(${JSON.stringify(text)}, ${id}))`
    if (form === 'argv') {
      return `rule(${files}, ({ out, in: read }) => ['/bin/sh', './write.sh', '${id}', '${text}', out[0], ...read])`
    }
    const writes = outputs
      .map((_, i) => `(echo ${text}.${i}; cat /dev/null \${read}) > \${out[${i}]}`)
      .join('; ')
    return `rule(${files}, ({ out, in: read }) => sh\`echo ${id} >> ran; ${pause}; ${writes}\`)`
  })
  const last = flow.tasks.flatMap(({ outputs }) => outputs).filter(path => !temps.has(path))
  writeFileSync(
    join(folder, 'flow.ts'),
    `import { rule, sh, target, temp } from 'millrace/flow'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
const work = (text: string, id: number) => {
  const action = async ({ out, in: read }: { out: readonly string[]; in: readonly string[] }) => {
    appendFileSync('ran', id + '\\n')
    writeFileSync(out[0] as string, text + '.0\\n' + read.map(path => readFileSync(path, 'utf8')).join(''))
  }
  action.toString = () => text
  return action
}
${rules.join('\n')}
target('all', ${JSON.stringify(last)})
`,
  )
  writeFileSync(
    join(folder, 'write.sh'),
    `id=$1; text=$2; out=$3; shift 3; echo $id >> ran; ${pause}; (echo $text.0; cat /dev/null "$@") > "$out"\n`,
  )
}

export function writeSources(folder: string, sources: ReadonlyMap<string, string>): void {
  for (const [path, text] of sources) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}
