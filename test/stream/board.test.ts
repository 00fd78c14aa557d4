import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkText, type Plan, planLines, ruleFinder } from '../../src/stream/index.ts'
import { patternFault } from '../../src/stream/language/pattern.ts'
import { escapeField } from '../../src/stream/board/plan-lines.ts'
import { PAPER } from './samples.ts'
import { toolsOrReason } from './support.ts'

const { tools, skip } = await toolsOrReason()

function planOf(config: unknown): Plan | undefined {
  return checkText(JSON.stringify(config), 'Config.json').plan
}

const lines = (plan: Plan, dir = '/dev/shm/wf'): string[] =>
  planLines(plan, { dir, instances: new Map([['appA', 1]]) }).map(line => line.replaceAll('\t', ' '))

describe('plan lines', () => {
  test('say all that the board must know', () => {
    const plan = planOf({
      name: 'WF',
      IO_Graph: [
        {
          name: 'appA',
          output_stream: ['a', 'b.dat', 'a,b %.dat', 'd', '/dev/shm/wf/abs.dat'],
          streaming: [
            { name: 'a,b %.dat', committed: 'on_close:3', mode: 'no_update' },
            { name: 'b.*', committed: 'on_file', file_deps: ['a,b %.dat', 'a'] },
            { dirname: 'd', committed: 'on_n_files', n_files: 4 },
          ],
        },
        { name: 'appB', input_stream: ['*'] },
      ],
      permanent: ['d', '*.dat'],
      exclude: ['*.log'],
      storage: { memory: ['d/*'], fs: ['a'] },
    })!
    assert.deepEqual(lines(plan), [
      'millrace-plan 1',
      'workflow WF',
      'dir /dev/shm/wf',
      'step 0 appA 1',
      'step 1 appB -',
      'rule file exact a%2Cb %25.dat 0 on_close:3 no_update',
      'rule dir exact d 0 on_n_files:4 update',
      'rule file glob b.* 0 on_file update a%2Cb %25.dat,a',
      'rule file glob d/* 0 on_close:1 update',
      'rule file exact abs.dat 0 on_termination:0 update',
      'rule file exact a 0 on_termination:0 update',
      'rule file glob a/* 0 on_termination:0 update',
      'exclude glob *.log',
      'exclude glob *.log/*',
      'permanent exact d',
      'permanent glob d/*',
      'permanent glob *.dat',
      'permanent glob *.dat/*',
      'storage memory glob d/*',
      'storage fs exact a',
      'storage fs glob a/*',
      'end',
    ])
  })

  test('a name outside the managed directory is refused', () => {
    const plan = planOf({ name: 'w', IO_Graph: [{ name: 'a', output_stream: ['/elsewhere/f'] }] })!
    assert.throws(() => lines(plan), /\/elsewhere\/f' is not in the managed directory \/dev\/shm\/wf/)
  })

  test('escapes are as the format asks', () => {
    assert.equal(escapeField(''), '-')
    assert.equal(escapeField('-'), '%2D')
    assert.equal(escapeField('a\tb,c%d\u0001é'), 'a%09b%2Cc%25d%01é')
  })
})

interface Match {
  path: string
  rule: number | null
  mode?: string
  commit?: string
  kind?: string
}

function boardMatches(plan: Plan, paths: string[]): Match[] {
  const input = `${planLines(plan, { dir: '/dev/shm/none' }).join('\n')}\n`
  const { stdout, stderr, status } = spawnSync(tools!.board, ['match', '--plan', ...paths], {
    input,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Match)
}

describe('the board', { skip }, () => {
  test('accepts the plan of the paper', () => {
    const plan = checkText(PAPER, 'Config.json').plan!
    const paths = ['file_A.dat', 'dir/file_D.dat', 'dir/x', 'dir', 'other']
    const found = boardMatches(plan, paths).map(({ mode, commit }) => `${commit} ${mode}`)
    assert.deepEqual(found, [
      'on_close:3 no_update',
      'on_close:1 update',
      'on_close:1 no_update',
      'on_n_files:100 no_update',
      'undefined undefined',
    ])
  })

  test('finds for every file the rule that we find', () => {
    const piece = fc.constantFrom(
      'a',
      'b',
      'é',
      '/',
      '*',
      '?',
      '[ab]',
      '[!a]',
      '[b/]',
      '\\*',
      '[',
      ']',
      '-',
      '{a,b}',
    )
    const pattern = fc
      .array(piece, { minLength: 1, maxLength: 4 })
      .map(parts => parts.join(''))
      .filter(text => patternFault(text) === undefined && !/^[/.]*$/.test(text) && !text.startsWith('/'))
    const rule = fc.record({
      pattern,
      committed: fc.constantFrom('on_close', 'on_close:2', 'on_termination'),
      mode: fc.constantFrom('update', 'no_update'),
      dir: fc.boolean(),
    })
    const name = fc
      .string({ unit: fc.constantFrom('a', 'b', 'é', '/', '*', '[', '-'), minLength: 1, maxLength: 5 })
      .filter(text => !/^\/|\/$|\/\//.test(text) && !text.startsWith('-'))
    fc.assert(
      fc.property(
        fc.uniqueArray(rule, { maxLength: 5, selector: entry => entry.pattern }),
        fc.array(name, { minLength: 1, maxLength: 12 }),
        (given, names) => {
          const streaming = given.map(({ pattern: text, committed, mode, dir }) => ({
            // What a directory pattern with a wildcard means below is for the library to say.
            [dir && !/[*?[]/.test(text) ? 'dirname' : 'name']: text,
            committed,
            mode,
          }))
          const outputs = given.map(entry => entry.pattern)
          const graph = [{ name: 's', output_stream: [...outputs, 'a/b', '?b'], streaming }]
          const plan = planOf({ name: 'w', IO_Graph: graph })
          fc.pre(plan !== undefined)
          const find = ruleFinder({ ...plan, rules: plan.rules.filter(entry => !entry.directory) })
          for (const match of boardMatches(plan, names)) {
            // What the board takes for a directory it looks up among the rules for directories.
            if (match.kind === 'dir') continue
            const ours = find(match.path)
            const field =
              ours?.commit.on === 'close' ? `on_close:${ours.commit.count ?? 1}` : 'on_termination:0'
            assert.equal(match.commit, ours === undefined ? undefined : field, match.path)
            assert.equal(match.mode, ours?.fire, match.path)
          }
        },
      ),
      { numRuns: 150 },
    )
  })

  test('takes ten thousand names', () => {
    const files = Array.from({ length: 10_000 }, (_, n) => `dir/file_${n}.dat`)
    const plan = planOf({ name: 'w', IO_Graph: [{ name: 'a', output_stream: files }] })!
    assert.equal(boardMatches(plan, ['dir/file_9999.dat'])[0]!.commit, 'on_termination:0')
  })
})
