import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { Running } from '../cli/folder.ts'
import { Program } from './folder.ts'

/** What one task can depend on, and how that is changed between two runs. Each is a module of its own. */
interface Case {
  /** The module; it exports `work`, and the program prints what `work()` gives. */
  readonly module: string
  readonly before?: Record<string, string>
  readonly after?: Record<string, string>
}

const head = `import { task, command, waitOn, FILE_IN, DIR_IN, FILE_OUT, IN } from 'millrace'\n`
const plain = (body: string, more = ''): string =>
  `${more}export const one = task({}, () => ${body})\nexport const work = () => one()\n`

const CASES: Record<string, Case> = {
  'an import of an import': {
    module: `import { a } from './deep/a.mjs'\n${plain('a()')}`,
    before: {
      'deep/a.mjs': `import { b } from './b.mjs'\nexport const a = () => b`,
      'deep/b.mjs': 'export const b = 1',
    },
    after: { 'deep/b.mjs': 'export const b = 2' },
  },
  'JSON that is imported': {
    module: `import data from './data1.json' with { type: 'json' }\n${plain('data.x')}`,
    before: { 'data1.json': '{"x":1}' },
    after: { 'data1.json': '{"x":2}' },
  },
  'a dynamic import with a computed name': {
    module: `const name = 'late' + 1\nexport const one = task({}, async () => (await import('./' + name + '.mjs')).x)\nexport const work = () => one()`,
    before: { 'late1.mjs': 'export const x = 1' },
    after: { 'late1.mjs': 'export const x = 2' },
  },
  'a dynamic import with a computed name in another folder': {
    module: `const name = 'late' + 2\nexport const one = task({}, async () => (await import('./plugins/' + name + '.mjs')).x)\nexport const work = () => one()`,
    before: { 'plugins/late2.mjs': 'export const x = 1' },
    after: { 'plugins/late2.mjs': 'export const x = 2' },
  },
  'a dynamic import of JSON with a computed name': {
    module: `const name = 'late' + 3\nexport const one = task({}, async () => (await import('./' + name + '.json', { with: { type: 'json' } })).default.x)\nexport const work = () => one()`,
    before: { 'late3.json': '{"x":1}' },
    after: { 'late3.json': '{"x":2}' },
  },
  'an import with a query': {
    module: `import { x } from './query.mjs?v=1'\n${plain('x')}`,
    before: { 'query.mjs': 'export const x = 1' },
    after: { 'query.mjs': 'export const x = 2' },
  },
  'an import with an encoded name': {
    module: `import { x } from './a%20blank.mjs'\n${plain('x')}`,
    before: { 'a blank.mjs': 'export const x = 1' },
    after: { 'a blank.mjs': 'export const x = 2' },
  },
  'an import with quotes and a dollar in its name': {
    module: `import { x } from "./it's $5.mjs"\n${plain('x')}`,
    before: { "it's $5.mjs": 'export const x = 1' },
    after: { "it's $5.mjs": 'export const x = 2' },
  },
  'a name of package.json': {
    module: `import { x } from '#impl'\n${plain('x')}`,
    before: {
      'impl-a.mjs': 'export const x = 1',
      'impl-b.mjs': 'export const x = 2',
      'package.json': '{"type":"module","imports":{"#impl":"./impl-a.mjs"}}',
    },
    after: { 'package.json': '{"type":"module","imports":{"#impl":"./impl-b.mjs"}}' },
  },
  'JSON by a name of package.json': {
    module: `import x from '#json' with { type: 'json' }\n${plain('x')}`,
    before: { 'mapped.json': '1', 'package.json': '{"type":"module","imports":{"#json":"./mapped.json"}}' },
    after: { 'mapped.json': '2' },
  },
  'a package, with the same size and time': {
    module: `import { x } from 'dep'\n${plain('x')}`,
    before: {
      'node_modules/dep/package.json': '{"name":"dep","type":"module","main":"main.js"}',
      'node_modules/dep/main.js': 'export const x = 1',
    },
    after: { 'node_modules/dep/main.js': 'export const x = 2' },
  },
  'a file beside the module that it reads': {
    module: `import { readFileSync } from 'node:fs'\n${plain(`readFileSync(new URL('./beside.txt', import.meta.url), 'utf8')`)}`,
    before: { 'beside.txt': '1' },
    after: { 'beside.txt': '2' },
  },
  'JSON of another folder, by a require of its own': {
    module: `import { createRequire } from 'node:module'\nconst load = createRequire(import.meta.url)\n${plain(`load('../far-HERE/x.json').x`)}`,
    before: { '../far-HERE/x.json': '{"x":1}' },
    after: { '../far-HERE/x.json': '{"x":2}' },
  },
  'an import by its whole path': {
    module: `import { x } from 'FOLDER/whole.mjs'\n${plain('x')}`,
    before: { 'whole.mjs': 'export const x = 1' },
    after: { 'whole.mjs': 'export const x = 2' },
  },
  'code of another folder, by its whole path': {
    module: `import { createRequire } from 'node:module'\nconst load = createRequire(import.meta.url)\n${plain(`load('FOLDER/../away-HERE/x.cjs')`)}`,
    before: { '../away-HERE/x.cjs': 'module.exports = 1' },
    after: { '../away-HERE/x.cjs': 'module.exports = 2' },
  },
  'code by a require of its own': {
    module: `import { createRequire } from 'node:module'\nconst load = createRequire(import.meta.url)\n${plain(`load('./old.cjs')`)}`,
    before: { 'old.cjs': 'module.exports = 1' },
    after: { 'old.cjs': 'module.exports = 2' },
  },
  'all that a module hands on': {
    module: `export * from './handed.mjs'\nimport { x } from './hands.mjs'\n${plain('x')}`,
    before: { 'hands.mjs': `export * from './handed.mjs'`, 'handed.mjs': 'export const x = 1' },
    after: { 'handed.mjs': 'export const x = 2' },
  },
  'an import with a template': {
    module:
      'export const one = task({}, async n => (await import(`./t/part${n}.mjs`)).x)\nexport const work = () => one(1)',
    before: { 't/part1.mjs': 'export const x = 1' },
    after: { 't/part1.mjs': 'export const x = 2' },
  },
  'a module that is a link': {
    module: `import { x } from './turned.mjs'\n${plain('x')}`,
    before: { 'one.mjs': 'export const x = 1', 'two.mjs': 'export const x = 2', 'turned.mjs': '-> one.mjs' },
    after: { 'turned.mjs': '-> two.mjs' },
  },
  'a variable of the environment in the shell of a command': {
    module: `
      import { readFileSync } from 'node:fs'
      export const shell = command({ params: [FILE_OUT], stdout: 0 }, () => ['sh', '-c', 'echo "$SIZE_OF_TEST"'])
      export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => { shell('HERE/shell.out'); return read('HERE/shell.out') }`,
  },
  'a variable of the environment, where all are handed on': {
    module: plain(
      'checked.SIZE_OF_TEST',
      `
      const check = (all, names) => Object.fromEntries(names.map(name => [name, all[name]]))
      const checked = check(process.env, ['SIZE_OF_TEST'])\n`,
    ),
  },
  'words of a command that come from elsewhere': {
    module: `
      import { readFileSync } from 'node:fs'
      const width = readFileSync('HERE/width')
      export const wide = command({ params: [FILE_OUT, IN], stdout: 0 }, (to, n) => ['printf', width + ' ' + n])
      export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => { wide('HERE/wide.out', 1); return read('HERE/wide.out') }`,
    before: { width: '10' },
    after: { width: '20' },
  },
  'what a command adds to the environment': {
    module: `
      import { readFileSync } from 'node:fs'
      const width = readFileSync('HERE/added', 'utf8')
      export const adds = command({ params: [FILE_OUT], stdout: 0, env: { width } }, () => ['printenv', 'width'])
      export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => { adds('HERE/added.out'); return read('HERE/added.out') }`,
    before: { added: '10' },
    after: { added: '20' },
  },
  'an argument of the program': { module: plain('size', `const size = process.argv[2]\n`) },
  'a variable of the environment': { module: plain('size', `const size = process.env.SIZE_OF_TEST\n`) },
  'a variable of the environment, with brackets': { module: plain(`process.env['SIZE_OF_TEST']`) },
  'a variable of the environment, taken apart': {
    module: plain('SIZE_OF_TEST', `const { SIZE_OF_TEST } = process.env\n`),
  },
  'a variable of the environment, imported': {
    module: plain('env.SIZE_OF_TEST', `import { env } from 'node:process'\n`),
  },
  'a variable of the environment, where that has another name': {
    module: plain('settings.SIZE_OF_TEST', `const { env: settings } = process\n`),
  },
  'a variable of the environment, imported under another name': {
    module: plain('settings.SIZE_OF_TEST', `import { env as settings } from 'node:process'\n`),
  },
  'a variable of the environment, all with brackets': { module: plain(`process['env'].SIZE_OF_TEST`) },
  'a variable of the environment, taken out of what is inside': {
    module: plain('SIZE_OF_TEST', `const { env: { SIZE_OF_TEST } } = process\n`),
  },
  'a variable of the environment with a small name': {
    module: plain('settings.size_of_test', `const settings = process.env\n`),
  },
  'which file a command prints to': {
    module: `
      import { readFileSync } from 'node:fs'
      const place = Number(readFileSync('HERE/place'))
      export const two = command({ params: [FILE_OUT, FILE_OUT], stdout: place, stderr: 1 - place }, () => ['sh', '-c', 'echo 1; echo 2 >&2'])
      export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => { two('HERE/one.out', 'HERE/two.out'); return read('HERE/one.out') }`,
    before: { place: '0' },
    after: { place: '1' },
  },
  'which exit codes of a command are right': {
    module: `
      import { readFileSync } from 'node:fs'
      const right = Number(readFileSync('HERE/right'))
      export const ends = command({ params: [FILE_OUT], stdout: 0, exitCodes: [right], onFailure: 'ignore', defaults: { params: { 0: 'HERE/wrong' } } }, () => ['sh', '-c', 'echo 1; exit 3'])
      export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => { ends('HERE/ends.out'); return read('HERE/ends.out') }`,
    before: { right: '3', wrong: 'wrong' },
    after: { right: '0' },
  },
  'what takes the place of a result': {
    module: `
      import { readFileSync } from 'node:fs'
      const returns = new Map([[1, readFileSync('HERE/instead', 'utf8')]])
      export const bad = task({ onFailure: 'ignore', defaults: { returns } }, () => { throw new Error('bad') })
      export const first = task({}, map => map.get(1))
      export const work = () => first(bad())`,
    before: { instead: '1' },
    after: { instead: '2' },
  },
  'a file that takes the place of one': {
    module: `
      import { readFileSync } from 'node:fs'
      export const bad = task({ params: [FILE_OUT], onFailure: 'ignore', defaults: { params: { 0: 'HERE/usual' } } }, () => { throw new Error('bad') })
      export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => { bad('HERE/bad.out'); return read('HERE/bad.out') }`,
    before: { usual: '1' },
    after: { usual: '2' },
  },
  'the key of a task that it calls': {
    module: `
      export const leaf = task({ key: process.env.SIZE_OF_TEST }, () => globalThis.process.env['SIZE_OF' + '_TEST'])
      export const one = task({}, async () => await waitOn(leaf()))
      export const work = () => one()`,
  },
  'a file that a task reads which it calls': {
    module: `
      import { readFileSync } from 'node:fs'
      export const leaf = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const one = task({}, async () => await waitOn(leaf('HERE/inner.txt')))
      export const work = () => one()`,
    before: { 'inner.txt': '1' },
    after: { 'inner.txt': '2' },
  },
  'the program of a command that it calls': {
    module: `
      import { readFileSync } from 'node:fs'
      export const leaf = command({ programs: ['./HERE/tool1.sh'], params: [FILE_OUT], stdout: 0 }, () => ['./HERE/tool1.sh'])
      export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const one = task({}, async () => { leaf('HERE/tool1.out'); return await waitOn(read('HERE/tool1.out')) })
      export const work = () => one()`,
    before: { 'tool1.sh': '#!/bin/sh\necho 1\n' },
    after: { 'tool1.sh': '#!/bin/sh\necho 2\n' },
  },
  'a file behind a link': {
    module: `
      import { readFileSync } from 'node:fs'
      export const one = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => one('HERE/link.txt')`,
    before: { 'behind.txt': '1', 'link.txt': '-> behind.txt' },
    after: { 'behind.txt': '2' },
  },
  'a link that leads to another file': {
    module: `
      import { readFileSync } from 'node:fs'
      export const one = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8'))
      export const work = () => one('HERE/turned.txt')`,
    before: { 'turn-a.txt': '1', 'turn-b.txt': '2', 'turned.txt': '-> turn-a.txt' },
    after: { 'turned.txt': '-> turn-b.txt' },
  },
  'a file outside that a link in a directory leads to': {
    module: `
      import { readFileSync } from 'node:fs'
      export const one = task({ params: [DIR_IN] }, path => readFileSync(path + '/link', 'utf8'))
      export const work = () => one('HERE/links')`,
    before: { 'links/own.txt': 'x', 'outside.txt': '1', 'links/link': '-> ../outside.txt' },
    after: { 'outside.txt': '2' },
  },
  'a folder outside that a link in a directory leads to': {
    module: `
      import { readFileSync } from 'node:fs'
      export const one = task({ params: [DIR_IN] }, path => readFileSync(path + '/far/a', 'utf8'))
      export const work = () => one('HERE/links2')`,
    before: { 'links2/own.txt': 'x', 'outside2/a': '1', 'links2/far': '-> ../outside2' },
    after: { 'outside2/a': '2' },
  },
  'a file of a directory with the same size and time': {
    module: `
      import { readFileSync } from 'node:fs'
      export const one = task({ params: [DIR_IN] }, path => readFileSync(path + '/inner/a', 'utf8'))
      export const work = () => one('HERE/tree')`,
    before: { 'tree/inner/a': '1' },
    after: { 'tree/inner/a': '2' },
  },
  'a file that came to a directory': {
    module: `
      import { readdirSync } from 'node:fs'
      export const one = task({ params: [DIR_IN] }, path => readdirSync(path).join())
      export const work = () => one('HERE/list')`,
    before: { 'list/a': '1' },
    after: { 'list/b': '1' },
  },
  'tasks that changed their order': {
    module: `import { names } from './names.mjs'\nconst all = names.map(name => task({}, () => name))\nexport const one = all[0]\nexport const two = all[1]\nexport const work = () => one()`,
    before: { 'names.mjs': `export const names = [1, 2]` },
    after: { 'names.mjs': `export const names = [2, 1]` },
  },
  'a class that another module exports': {
    module: `import { Box } from './box.mjs'
      export { Box }
      import { measure } from './measure.mjs'
      export const unused = task({}, () => 0)
      export const work = () => measure(new Box(1))`,
    before: {
      'box.mjs': 'export class Box { constructor(x) { this.x = x } size() { return this.x } }',
      'measure.mjs': `${head}export const measure = task({}, box => box.size())`,
    },
    after: { 'box.mjs': 'export class Box { constructor(x) { this.x = x } size() { return this.x * 2 } }' },
  },
}

/** Each case has a folder of its own. */
const write = (program: Program, folder: string, files: Record<string, string> = {}): void => {
  for (const [name, text] of Object.entries(files)) {
    const path = program.path(join(folder, name.replaceAll('HERE', folder)))
    mkdirSync(dirname(path), { recursive: true })
    rmSync(path, { force: true })
    if (text.startsWith('-> ')) {
      symlinkSync(text.slice(3), path)
      continue
    }
    // In place, and with the times of before: only the time of the last change tells.
    const named = text.replaceAll('FOLDER', program.path(folder)).replaceAll('HERE', folder)
    writeFileSync(path, named)
    if (name.endsWith('.sh')) chmodSync(path, 0o755)
    utimesSync(path, 1000, 1000)
  }
}

const APP = `
  import { main, waitOn } from 'millrace'
  import { cases } from './cases.mjs'
  main(async () => {
    for (const work of cases) console.log(JSON.stringify(await work()))
  })
`

test('none of what a result depends on can change without its task running again', async () => {
  const names = Object.keys(CASES)
  const program = new Program({
    'app.mjs': APP,
    'cases.mjs': `
      import { waitOn } from 'millrace'
      ${names.map((_, i) => `import { work as work${i} } from './c${i}/case.mjs'`).join('\n')}
      export const cases = [${names.map((_, i) => `work${i}`).join()}].map(work => () => waitOn(work()))`,
  })
  const each = (body: (one: Case, folder: string) => void): void =>
    Object.values(CASES).forEach((one, i) => body(one, `c${i}`))
  each(({ module, before }, folder) => write(program, folder, { ...before, 'case.mjs': head + module }))
  const inEnvironment = async (value: string, ...options: string[]): Promise<string[]> => {
    process.env['SIZE_OF_TEST'] = value
    process.env['size_of_test'] = value
    const { stdout, stderr } = await program.run(...options, '--', value)
    const lines = stdout.trim().split('\n')
    assert.equal(lines.length, names.length, stderr)
    return lines
  }
  const first = await inEnvironment('1')
  each(({ after }, folder) => write(program, folder, after))
  const resumed = await inEnvironment('2', '--resume')
  const again = await inEnvironment('2')
  const told = (lines: readonly string[]): string[] => names.map((name, i) => `${name}: ${lines[i]}`)
  assert.deepEqual(told(resumed), told(again))
  for (const [i, name] of names.entries()) assert.notEqual(first[i], again[i], `${name} changes nothing`)
})

const READ = `
  import { task, FILE_IN, FILE_OUT, DIR_OUT, DIR_IN, IN } from 'millrace'
  import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
  import { ran } from './ran.mjs'
  export const make = task({ params: [FILE_OUT] }, path => { ran('make'); writeFileSync(path, 'made') })
  export const read = task({ params: [FILE_IN] }, path => { ran('read'); return readFileSync(path, 'utf8') })
  export const links = task({ params: [DIR_OUT] }, path => { ran('links'); symlinkSync('../far.txt', path + '/far') })
  export const follow = task({ params: [DIR_IN] }, path => { ran('follow'); return readFileSync(path + '/far', 'utf8') })
  export const slow = task({ params: [FILE_IN] }, async path => {
    ran('slow')
    while (!existsSync('go')) await new Promise(resolve => setTimeout(resolve, 2))
    return readFileSync(path, 'utf8')
  })
`

test('files that the program writes between two tasks are seen as they are then', async () => {
  const program = new Program({
    'tasks.mjs': READ,
    'app.mjs': `
      import { main, waitOn, waitOnFile } from 'millrace'
      import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
      import { make, read } from './tasks.mjs'
      main(async () => {
        const more = readFileSync('more.txt')
        writeFileSync('x', '1')
        console.log(await waitOn(read('x')))
        writeFileSync('x', more)
        console.log(await waitOn(read('x')))
        make('./y')
        await waitOnFile('./y')
        appendFileSync('y', more)
        console.log(await waitOn(read('y')))
      })`,
    'more.txt': '2',
  })
  assert.equal((await program.run()).stdout, '1\n2\nmade2\n')
  const again = await program.run('--resume')
  assert.equal(again.stdout, '1\n2\nmade2\n', again.stderr)
  assert.ok(!again.ran.includes('make'), 'what the program added is not part of what was made')
  writeFileSync(program.path('more.txt'), '3')
  assert.equal((await program.run('--resume')).stdout, '1\n3\nmade3\n')
})

test('a file that changed while a task ran is not what its result was made of', async () => {
  const program = new Program({
    'tasks.mjs': READ,
    'app.mjs': `
      import { main, waitOn } from 'millrace'
      import { slow } from './tasks.mjs'
      main(async () => console.log(await waitOn(slow('in.txt'))))`,
    'in.txt': 'first',
  })
  const args = ['run', 'app.mjs', '--checkpoint', 'all', '--resume']
  const run = new Running(program.folder, args)
  while (program.ran().length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  writeFileSync(program.path('in.txt'), 'other')
  writeFileSync(program.path('go'), '')
  assert.equal((await run.ended).stdout, 'other\n')
  writeFileSync(program.path('in.txt'), 'first')
  assert.equal((await program.run('--resume')).stdout, 'first\n')
})

test('links that are brought back lead to what they led to, or their task runs again', async () => {
  const program = new Program({
    'tasks.mjs': READ,
    'app.mjs': `
      import { main, waitOn } from 'millrace'
      import { follow, links } from './tasks.mjs'
      main(async () => { links('dir'); console.log(await waitOn(follow('dir'))) })`,
    'far.txt': '1',
  })
  assert.equal((await program.run()).stdout, '1\n')
  rmSync(program.path('dir'), { recursive: true })
  assert.deepEqual((await program.run('--resume')).ran, [])
  writeFileSync(program.path('far.txt'), '2')
  const changed = await program.run('--resume')
  assert.equal(changed.stdout, '2\n')
  rmSync(program.path('dir'), { recursive: true })
  writeFileSync(program.path('far.txt'), '3')
  assert.equal((await program.run('--resume')).stdout, '3\n')
})

test('arrays that were kept have buffers of their own', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOn } from 'millrace'
      export const ones = task({}, n => new Float64Array(n).fill(1))
      main(async () => {
        const array = ones(3)
        const one = await waitOn(array)
        one[0] = 5
        console.log(one.buffer.byteLength, one.byteOffset, (await waitOn(ones(3)))[0])
      })`,
  })
  assert.equal((await program.run()).stdout, '24 0 1\n')
  assert.equal((await program.run('--resume')).stdout, '24 0 1\n')
})

test('a file that an earlier run has written over, and that is written over once more, is told', async () => {
  const program = new Program({
    'app.mjs': `
      import { task, main, waitOnFile, FILE_INOUT, IN } from 'millrace'
      import { appendFileSync, readFileSync } from 'node:fs'
      export const grow = task({ params: [FILE_INOUT, IN] }, (path, n) => appendFileSync(path, String(n)))
      main(async () => {
        grow('source.txt', 1)
        grow('source.txt', 2)
        console.log(readFileSync(await waitOnFile('source.txt'), 'utf8'))
      })`,
    'source.txt': 's',
  })
  const first = await program.run('--resume')
  assert.equal(first.stdout, 's12\n')
  assert.doesNotMatch(first.stderr, /earlier run/)
  assert.match((await program.run('--resume')).stderr, /source\.txt was as an earlier run had left it/)
  writeFileSync(program.path('source.txt'), 's')
  const again = await program.run('--resume')
  assert.equal(again.stdout, 's12\n')
  assert.match(again.stderr, /2 kept from before/)
})
