import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ERRORS } from '../../src/core/errors.ts'
import { ATTEMPT_STATES } from '../../src/node/attempt.ts'
import { TASK_STATES } from '../../src/core/tasks/task.ts'
import { apiPage } from '../../scripts/api-page.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`),
]

interface Block {
  page: string
  line: number
  info: string
  text: string
}

function blocksOf(page: string): Block[] {
  const blocks: Block[] = []
  let open: Block | null = null
  readFileSync(join(root, page), 'utf8')
    .split('\n')
    .forEach((line, i) => {
      if (open) {
        if (line.startsWith('```')) {
          blocks.push(open)
          open = null
        } else open.text += `${line}\n`
      } else if (line.startsWith('```')) open = { page, line: i + 1, info: line.slice(3).trim(), text: '' }
    })
  return blocks
}

const blocks = pages.flatMap(blocksOf)
const code = blocks.filter(({ info }) => /^ts\b/.test(info))

/** Inside the repository, so that `millrace` is found as it is by users. */
function temporary<T>(body: (folder: string) => T): T {
  mkdirSync(join(root, 'test', 'tmp'), { recursive: true })
  const folder = mkdtempSync(join(root, 'test', 'tmp', 'docs-'))
  try {
    return body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('pages name paths of the repository that exist', () => {
  const named = [...pages, 'CONTRIBUTING.md'].flatMap(page =>
    [
      ...readFileSync(join(root, page), 'utf8').matchAll(
        /`((?:src|preload|native|scripts|bench|test)\/[\w./-]+)/g,
      ),
    ]
      .map(([, path = '']) => path)
      .filter(path => !path.includes('NAME') && !path.startsWith('test/tmp'))
      .map(path => ({ page, path })),
  )
  assert.ok(named.length > 40)
  assert.deepEqual(
    named.filter(({ path }) => !existsSync(join(root, path))),
    [],
  )
})

test('there are code blocks to check', () => {
  assert.ok(code.length >= 3, `found ${code.length}`)
  assert.ok(code.some(({ info }) => info.includes('run')))
})

test('every TypeScript block in README and docs is correct TypeScript', () => {
  temporary(folder => {
    const names = code.map((block, i) => {
      writeFileSync(
        join(folder, `block-${i}.ts`),
        block.text.includes('export') ? block.text : `${block.text}\nexport {}\n`,
      )
      return `${block.page}:${block.line}`
    })
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: '../../../tsconfig.test.json',
        compilerOptions: { noEmit: true, rootDir: '../../..' },
        include: ['*.ts'],
      }),
    )
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' })
    const said = stdout.replaceAll(/\S*block-(\d+)\.ts/g, (_, i: string) => names[Number(i)] ?? '')
    assert.equal(status, 0, said)
  })
})

for (const block of code.filter(({ info }) => info.split(' ').includes('run'))) {
  test(`the program at ${block.page}:${block.line} prints what the page says`, () => {
    temporary(folder => {
      // As users have it: a package of their own with millrace installed.
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
      mkdirSync(join(folder, 'node_modules'))
      symlinkSync(root, join(folder, 'node_modules', 'millrace'), 'dir')
      writeFileSync(join(folder, 'app.ts'), block.text)
      const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')
      const { stdout, stderr, status } = spawnSync(process.execPath, [tsx, 'app.ts'], {
        cwd: folder,
        encoding: 'utf8',
      })
      assert.equal(status, 0, stderr)
      const next = blocks[blocks.indexOf(block) + 1]
      if (next?.info === 'text' && next.page === block.page) assert.equal(stdout, next.text)
    })
  })
}

test('docs/errors.md lists exactly the codes of the registry, with their meanings', () => {
  const page = readFileSync(join(root, 'docs', 'errors.md'), 'utf8')
  const listed = [...page.matchAll(/^## (MR_\w+)$/gm)].map(match => match[1])
  assert.deepEqual(listed, Object.keys(ERRORS))
  for (const [name, { meaning, remedy }] of Object.entries(ERRORS)) {
    assert.ok(page.includes(meaning), `${name}: the page does not say what it means`)
    assert.ok(page.includes(remedy), `${name}: the page does not say the way out`)
  }
})

test('docs/states.md defines exactly the states of a task and of an attempt', () => {
  const page = readFileSync(join(root, 'docs', 'states.md'), 'utf8')
  const [ofTask, ofAttempt] = page.split('## The states of an attempt')
  const listed = (text = ''): unknown[] => [...text.matchAll(/^\| `(\w+)`\s*\|/gm)].map(match => match[1])
  assert.deepEqual(listed(ofTask), [...TASK_STATES])
  assert.deepEqual(listed(ofAttempt), [...ATTEMPT_STATES])
})

test('the API reference has every exported name, as it is declared', () => {
  assert.equal(
    readFileSync(join(root, 'docs', 'api.md'), 'utf8'),
    apiPage(),
    'run `npm run build && node scripts/api-page.mjs`',
  )
})
