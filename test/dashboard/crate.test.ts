import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CrateFacts } from '../../src/report/export/crate-facts.ts'
import { makeFolder, millrace } from '../cli/folder.ts'
import { RULES, brokenRules, type Document, type Entity, type Rule } from './crate-rules.ts'

const PROGRAM = `
import { command, main, task, DIR_IN, DIR_OUT, FILE_IN, FILE_OUT, IN } from 'millrace'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
const split = command({ name: 'split', params: [FILE_IN, DIR_OUT] },
  (from: string, to: string) => ['sh', '-c', 'mkdir -p "$2" && cp "$1" "$2/a" && cp "$1" "$2/b"', 'sh', from, to])
const count = task({ name: 'count', params: [DIR_IN, DIR_IN, FILE_OUT] }, (pieces: string, raw: string, to: string) => {
  writeFileSync(to, String(readdirSync(pieces).length + readdirSync(raw).length))
})
const fail = command({ name: 'fail', params: [FILE_IN, FILE_OUT] }, (from: string, to: string) => ['sh', '-c', 'exit 3', 'sh', from, to])
const copy = command({ name: 'copy', params: [FILE_IN, FILE_OUT] }, (from: string, to: string) => ['cp', from, to])
main(() => {
  split('in put.txt', 'pieces')
  count('pieces', 'raw', 'number 100%.txt')
  fail('number 100%.txt', 'never')
  copy('a#b?c=1&d.txt', 'no:scheme [1]/ä "x" <y>.txt')
})
`

const folder = makeFolder({
  'app.ts': PROGRAM,
  'in put.txt': 'content',
  'a#b?c=1&d.txt': 'odd',
  'raw/x': '1',
  'raw/y': '2',
})
let text = ''

before(async () => {
  const run = await millrace(folder, ['run', 'app.ts', '--cpus', '2', '--progress', 'plain'])
  assert.equal(run.code, 1, run.stderr)
  const crate = await millrace(folder, ['crate'])
  assert.equal(crate.code, 0, crate.stderr)
  text = readFileSync(join(folder, 'ro-crate-metadata.json'), 'utf8')
})

const read = (): Document => JSON.parse(text) as Document
const entity = (document: Document, id: string): Entity => {
  const found = document['@graph'].find(one => one['@id'] === id)
  assert.ok(found, `${id} is not in the crate`)
  return found
}
const named = (document: Document, name: RegExp): Entity => {
  const found = document['@graph'].find(one => name.test(String(one['name'])))
  assert.ok(found, `${name} is not in the crate`)
  return found
}

test('the crate of a run with folders and a failed task keeps to the rules', () => {
  const document = read()
  assert.deepEqual(brokenRules(folder, document), [])
  assert.equal(entity(document, 'pieces/')['@type'], 'Dataset')
  const split = named(document, /^split#/)
  assert.deepEqual([split['object'], split['result']], [{ '@id': 'in%20put.txt' }, { '@id': 'pieces/' }])
  const count = named(document, /^count#/)
  assert.deepEqual(count['object'], [{ '@id': 'pieces/' }, { '@id': 'raw/' }])
  const fail = named(document, /^fail#/)
  assert.deepEqual(fail['result'], [])
  assert.equal(fail['actionStatus'], 'http://schema.org/FailedActionStatus')
  assert.deepEqual(named(document, /^Run \S+$/)['actionStatus'], fail['actionStatus'])
  const copy = named(document, /^copy#/)
  assert.deepEqual(
    [copy['object'], copy['result']],
    [{ '@id': 'a%23b%3Fc%3D1%26d.txt' }, { '@id': 'no%3Ascheme%20%5B1%5D/%C3%A4%20%22x%22%20%3Cy%3E.txt' }],
  )
})

test('a file that is told twice as complete was made once', () => {
  const facts = new CrateFacts()
  const at = 1
  const task = { task: 1, kind: 1, parent: null, group: null, priority: 0, reads: [], writes: [] }
  facts.observe({ type: 'kind-defined', at, kind: 1, name: 'make', form: 'command', module: '' })
  facts.observe({ type: 'submitted', at, ...task })
  const stream = { type: 'stream', at, path: 'a', state: 'committed', bytes: 1 } as const
  for (const waits of ['use waits', null])
    facts.observe({ ...stream, producers: ['make'], readers: [{ name: 'use', waits }] })
  facts.observe({ type: 'finished', at, task: 1, attempt: 1 })
  assert.deepEqual([facts.tasks[0]?.writes, facts.outputs()], [[-1], ['a']])
})

const copyFiles = (to: string): void =>
  cpSync(folder, to, {
    recursive: true,
    filter: from => !/node_modules|\.millrace/.test(relative(folder, from)),
  })

const python = process.env['ROCRATE_PYTHON'] ?? 'python3'
const needed = 'import requests_cache, rocrate, rocrate_validator'
const hasValidator = spawnSync(python, ['-c', needed]).status === 0

/** What the validator finds missing in the crate of this folder; it does not use the network. */
function found(crate: string, profile: string): { severity: string; message: string }[] {
  const cache = join(makeFolder({}, { installed: false }), 'cache')
  const script = fileURLToPath(new URL('crate-validate.py', import.meta.url))
  const { status, stdout, stderr } = spawnSync(python, [script, cache, crate, profile], {
    encoding: 'utf8',
    timeout: 100_000,
  })
  assert.equal(status, 0, stderr)
  const { issues, skipped_checks: skipped } = JSON.parse(stdout) as {
    issues: { severity: string; message: string }[]
    skipped_checks: number
  }
  assert.equal(skipped, 0)
  return issues
}

/** A crate of what `millrace` made in this folder. */
async function crateOf(home: string, words: readonly string[]): Promise<Document> {
  const run = await millrace(home, [...words, '--progress', 'plain'])
  assert.equal(run.code, 0, run.stderr)
  assert.equal((await millrace(home, ['crate'])).code, 0)
  return JSON.parse(readFileSync(join(home, 'ro-crate-metadata.json'), 'utf8')) as Document
}

const FLOW = `
import { rule, sh, target } from 'millrace/flow'
rule('mid/{n}.sorted', 'in/{n}.txt', ({ out, in: text }) => sh\`sort -rn \${text} > \${out}\`)
rule('total.txt', ['mid/1.sorted', 'mid/2.sorted'], ({ out, in: sorted }) => sh\`cat \${sorted} > \${out}\`)
target('all', ['total.txt'])
`
const made = makeFolder({ 'flow.js': FLOW, 'in/1.txt': '1\n2\n', 'in/2.txt': '3\n' }, { name: 'crate' })

test('the crate of a workflow that was made names its rules, its files and its language', async () => {
  const document = await crateOf(made, ['make'])
  assert.deepEqual(brokenRules(made, document), [])
  assert.deepEqual(entity(document, 'flow.js')['programmingLanguage'], { '@id': 'https://tc39.es/ecma262/' })
  const run = named(document, /^Run \S+$/)
  assert.deepEqual(run['object'], [{ '@id': 'in/1.txt' }, { '@id': 'in/2.txt' }])
  const total = named(document, /^total\.txt#/)
  assert.deepEqual(total['object'], [{ '@id': 'mid/1.sorted' }, { '@id': 'mid/2.sorted' }])
  assert.deepEqual(total['result'], { '@id': 'total.txt' })
})

const streamed = makeFolder(
  {
    'config.json': JSON.stringify({
      name: 'sensors',
      IO_Graph: [
        {
          name: 'measure',
          output_stream: ['readings.csv'],
          streaming: [{ name: ['readings.csv'], committed: 'on_close', mode: 'no_update' }],
        },
        { name: 'count', input_stream: ['readings.csv'], output_stream: ['count.txt'] },
      ],
      permanent: ['readings.csv', 'count.txt'],
    }),
    'steps.json': JSON.stringify({
      measure: { run: ['sh', '-c', 'seq 100 > readings.csv'] },
      count: { run: ['sh', '-c', 'wc -l < readings.csv > count.txt'] },
    }),
  },
  { installed: false, name: 'crate' },
)

test('the crate of a streaming workflow names the files that its programs passed on', async () => {
  const document = await crateOf(streamed, ['stream', 'run', 'config.json', '--steps', 'steps.json'])
  assert.deepEqual(brokenRules(streamed, document), [])
  assert.deepEqual(named(document, /^measure#/)['result'], { '@id': 'readings.csv' })
  const count = named(document, /^count#/)
  assert.deepEqual([count['object'], count['result']], [{ '@id': 'readings.csv' }, { '@id': 'count.txt' }])
  assert.deepEqual(named(document, /^Run \S+$/)['result'], [
    { '@id': 'count.txt' },
    { '@id': 'readings.csv' },
  ])
})

test(
  'rocrate-validator finds nothing that is required and missing, and what it advises of actions is done',
  { skip: hasValidator ? false : `no Python with it (roc-validator and rocrate<0.14 of PyPI): ${python}` },
  () => {
    // The validator does not find the root of a crate in a folder with a space in its name.
    const copy = makeFolder({}, { installed: false, name: 'crate' })
    copyFiles(copy)
    const crates = [copy, made, streamed].flatMap(crate =>
      ['ro-crate-1.1', 'workflow-run-crate-0.5'].map(profile => [crate, profile] as const),
    )
    for (const [crate, profile] of crates) {
      const issues = found(crate, profile)
      assert.deepEqual(
        issues.filter(({ severity }) => severity === 'REQUIRED'),
        [],
      )
      const advised = issues
        .filter(({ severity }) => severity === 'RECOMMENDED')
        .map(({ message }) => message)
      assert.deepEqual(
        advised.filter(message =>
          /ISO 8601|actionStatus|description|singleton|softwareVersion should/.test(message),
        ),
        [],
      )
    }
    rmSync(join(copy, 'in put.txt'))
    const document = read()
    delete entity(document, './')['datePublished']
    writeFileSync(join(copy, 'ro-crate-metadata.json'), JSON.stringify(document))
    const broken = found(copy, 'ro-crate-1.1').filter(({ severity }) => severity === 'REQUIRED')
    for (const part of [/in%20put\.txt|in put\.txt/, /datePublished|date/])
      assert.ok(
        broken.some(({ message }) => part.test(message)),
        JSON.stringify(broken),
      )
  },
)

/** For each rule a change of the crate that breaks it. */
const BREAKS: Record<Rule, (document: Document, folder: string) => void> = {
  'the context is that of RO-Crate 1.1': document => (document['@context'] = 'https://schema.org/'),
  'each entity has an id and a type': document => delete entity(document, 'pieces/')['@type'],
  'no two entities have the same id': document =>
    document['@graph'].push({ ...entity(document, 'in%20put.txt') }),
  'ids are valid addresses': document => (entity(document, 'in%20put.txt')['@id'] = 'in put.txt'),
  'the graph is flat: a property has texts, or refers to entities': document =>
    (entity(document, './')['author'] = { '@id': '#ada', name: 'Ada' }),
  'what is referred to is there, or has an address of its own': document =>
    (entity(document, './')['author'] = { '@id': '#ada' }),
  'the descriptor is a CreativeWork': document =>
    (entity(document, 'ro-crate-metadata.json')['@type'] = 'File'),
  'the descriptor conforms to RO-Crate 1.1': document =>
    (entity(document, 'ro-crate-metadata.json')['conformsTo'] = { '@id': 'https://w3id.org/ro/crate/1.0' }),
  'the descriptor is about a Dataset': document => (entity(document, './')['@type'] = 'Thing'),
  'the root has a name': document => delete entity(document, './')['name'],
  'the root has a description': document => delete entity(document, './')['description'],
  'the root has a date': document => (entity(document, './')['datePublished'] = 'yesterday'),
  'the root has a license': document => delete entity(document, './')['license'],
  'the root conforms to the profiles': document =>
    (entity(document, './')['conformsTo'] as unknown[]).shift(),
  'profiles are described': document =>
    delete entity(document, 'https://w3id.org/ro/wfrun/process/0.5')['version'],
  'files and folders are parts of the root': document =>
    (entity(document, './')['hasPart'] as unknown[]).shift(),
  'parts of the root are files and folders': document =>
    (entity(document, './')['hasPart'] as unknown[]).push({ '@id': '#millrace' }),
  'a folder is a Dataset with a slash at the end, and there': (_, copy) =>
    rmSync(join(copy, 'pieces'), { recursive: true }),
  'a file is there with its size': (_, copy) => rmSync(join(copy, 'number 100%.txt')),
  'a file has its SHA-256': document => (entity(document, 'in%20put.txt')['sha256'] = '0'.repeat(64)),
  'the main entity is a workflow in a file': document => (entity(document, 'app.ts')['@type'] = 'File'),
  'the workflow has a name and a language': document =>
    delete entity(document, 'app.ts')['programmingLanguage'],
  'an action has the workflow as instrument': document =>
    (named(document, /^Run \S+$/)['instrument'] = { '@id': '#millrace' }),
  'each action has a program as instrument': document => delete named(document, /^split#/)['instrument'],
  'programs have names': document => delete entity(document, '#millrace')['name'],
  'the root mentions each action': document => (entity(document, './')['mentions'] as unknown[]).pop(),
  'each action says what it read': document =>
    (named(document, /^split#/)['object'] = [{ '@id': '#millrace' }]),
  'each action says what it made': document => delete named(document, /^split#/)['result'],
  'each action ended after it began': document =>
    (named(document, /^split#/)['endTime'] = '2001-01-01T00:00:00Z'),
  'each action says how it ended': document => delete named(document, /^split#/)['actionStatus'],
  'an error is said where an action failed, and only there': document =>
    delete named(document, /^fail#/)['error'],
  'an agent is a person or an organization': document =>
    (named(document, /^split#/)['agent'] = { '@id': 'app.ts' }),
}

test('each rule finds the crate that breaks it', () => {
  assert.deepEqual(Object.keys(BREAKS).sort(), Object.keys(RULES).sort())
  for (const [rule, change] of Object.entries(BREAKS) as [Rule, (typeof BREAKS)[Rule]][]) {
    const copy = makeFolder({}, { installed: false })
    copyFiles(copy)
    const document = read()
    assert.deepEqual(brokenRules(copy, document), [])
    change(document, copy)
    assert.ok(brokenRules(copy, document).includes(rule), rule)
  }
})
