// What is kept is whole, and made of what is whole; where that cannot be seen, the run says so.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { hasCommand } from '../preload/harness.ts'
import { assertClean, folderOf, isApart, pipe, read, run, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()
const growing = { committed: 'on_close', mode: 'no_update' }

describe('a directory', { skip, timeout: 120_000 }, () => {
  const stages = {
    make: { out: ['d'], rules: [{ dirname: 'd', committed: 'on_termination', mode: 'no_update' }] },
    pack: { in: ['d'], out: ['out'] },
  }
  const make = 'mkdir d; for i in 1 2 3 4 5 6; do sleep 0.05; echo $i > d/$i; done'

  for (const [needs, pack] of [
    ['tar', 'tar -cf out d'],
    ['tar', 'tar -C . -cf out ./d'],
    ['cp', 'cp -a d copy && cp -r copy/. again && tar -cf out again'],
    ['find', 'find d -type f | sort | xargs cat > out'],
    ['python3', 'python3 -c \'import tarfile; t = tarfile.open("out", "w"); t.add("d")\''],
  ] as const)
    test(`is complete for who asks for its times: ${pack}`, { skip: !hasCommand(needs) }, async () => {
      const { code, place, told } = await run({
        stages,
        steps: { make, pack },
        extra: { permanent: ['out'] },
      })
      assert.equal(code, 0, told)
      const text = pack.includes('xargs')
        ? read(place, 'out')
        : spawnSync('tar', ['-xOf', join(place, 'out')], { encoding: 'utf8' }).stdout
      assert.deepEqual(text.trim().split('\n').sort(), ['1', '2', '3', '4', '5', '6'])
      assertClean()
    })

  test('that is there can be entered before it is complete', async () => {
    const { code, place, told } = await run({
      stages: {
        ...stages,
        make: { out: ['d'], rules: [{ dirname: 'd', committed: 'on_close', mode: 'no_update' }] },
      },
      steps: {
        make: 'mkdir d; echo 1 > d/1; until [ -e $MILLRACE_PLACE/in ]; do sleep 0.02; done; echo 2 > d/2',
        pack: 'cat d/1 > /dev/null; [ -d d ] && cd d && echo in > $MILLRACE_PLACE/in; cat * > ../out',
      },
      extra: { permanent: ['out'] },
    })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'out'), '1\n2\n')
  })
})

describe('after an error for an input', { skip, timeout: 120_000 }, () => {
  const stages = {
    make: { out: ['a'], rules: [{ name: 'a', ...growing }] },
    use: { in: ['a'], out: ['out', 'early'], rules: [{ name: 'early', committed: 'on_close' }] },
  }
  const make = '{ seq 1 50000; kill -9 $$; } > a'

  for (const use of [
    'cat a | sort -n > out',
    'cat a > out; true',
    'cat a > out || echo none > out',
    'sort -n < a > out | cat',
    '(cat a; true) > out',
    'if ! cat a > out; then cp /dev/null out; fi',
  ])
    test(`what a step makes is not kept, whatever its exit code: ${use}`, async () => {
      const { code, place, told } = await run({
        stages,
        steps: { make, use: `echo before > early; ${use}` },
        extra: { permanent: ['out', 'early'] },
      })
      assert.equal(code, 1)
      assert.equal(existsSync(join(place, 'out')), false, told)
      assert.match(told, /step 'use' (is taken for failed: it exited with status 0|failed)/)
      assert.equal(read(place, 'early'), 'before\n', 'what was complete before is kept')
      assertClean()
    })

  test('and what is made of that is not kept either', async () => {
    const { code, place, told } = await run({
      stages: {
        ...stages,
        use: { in: ['a'], out: ['out'], rules: [{ name: 'out', ...growing }] },
        next: { in: ['out'], out: ['last'] },
      },
      steps: { make, use: 'cat a | sort -n > out', next: 'wc -l < out > last' },
      extra: { permanent: ['last'] },
    })
    assert.equal(code, 1)
    assert.equal(existsSync(join(place, 'last')), false, told)
  })
})

describe("a directory of the user's own", { skip, timeout: 120_000 }, () => {
  const failing = async (files: Record<string, string>): Promise<{ dir: string; told: string }> => {
    const dir = folderOf(files)
    const { code, told } = await run({
      stages: pipe,
      steps: { make: 'seq 1 5 > numbers', add: 'echo half > sum; kill -9 $$' },
      extra: { permanent: ['sum', 'numbers'] },
      options: { dir },
    })
    assert.equal(code, 1)
    return { dir, told }
  }

  test('keeps no permanent file that was never completed', async () => {
    const { dir, told } = await failing({})
    assert.match(told, /never completed, so not kept: sum/)
    assert.equal(existsSync(join(dir, 'sum')), false)
    assert.equal(read(dir, 'numbers'), '1\n2\n3\n4\n5\n')
  })

  test('keeps what was there before, and says that it was written in part', async () => {
    const { dir, told } = await failing({ sum: 'old\n' })
    assert.ok(existsSync(join(dir, 'sum')))
    assert.match(told, /there before, and written again only in part: sum/)
  })
})

describe('programs without the library', { skip, timeout: 120_000 }, () => {
  const make = '{ seq 1 1000; sleep 0.3; seq 1001 2000; } > numbers'
  const whole = '2000\n'
  const lookIn = async (line: string): Promise<{ out: string; told: string; code: number }> => {
    const { code, place, told } = await run({
      stages: pipe,
      steps: { make, add: line },
      extra: { permanent: ['sum'] },
    })
    return { code, told, out: existsSync(join(place, 'sum')) ? read(place, 'sum') : '' }
  }

  for (const line of [
    'env -i cat numbers | wc -l > sum',
    'env -i sh -c "cat numbers" | wc -l > sum',
    'env -i cat < numbers | wc -l > sum',
    'python3 -c \'import subprocess; subprocess.run(["cat", "numbers"], env={})\' | wc -l > sum',
    'echo numbers | env -i xargs cat | wc -l > sum',
  ])
    test(`a cleared environment does not lose it: ${line}`, { skip: !hasCommand('python3') }, async () => {
      const { code, out, told } = await lookIn(line)
      assert.equal(code, 0, told)
      assert.equal(out, whole)
    })

  const static_ = folderOf({ 'count.c': COUNT() })
  const count = join(static_, 'count')
  const built = spawnSync('cc', ['-static', '-o', count, join(static_, 'count.c')]).status === 0
  for (const line of [
    `${count} numbers > sum`,
    `${count} < numbers > sum`,
    `${count} --in=numbers > sum`,
    `echo numbers | xargs ${count} > sum`,
    `env -i ${count} numbers > sum`,
    `python3 -c 'import subprocess; subprocess.run(["${count}", "numbers"])' > sum`,
    `printf '#!${count}\\n' > script; chmod +x script; ./script numbers > sum`,
  ])
    test(
      `a static one starts when what it names is complete, and is reported: ${line.replaceAll(static_, '.')}`,
      {
        skip: !built && 'no static libc',
      },
      async () => {
        const { code, out, told } = await lookIn(line)
        assert.equal(code, 0, told)
        assert.equal(out, line.includes('script') ? out : whole)
        assert.match(told, /warning:? step 'add'.*statically linked/)
        assert.equal(told.match(/statically linked/g)?.length, 1, told)
      },
    )
})

/** Counts the lines of the file that its last argument names, or of its input. */
function COUNT(): string {
  return `#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[argc - 1] : "-", *at = strchr(name, '=');
  FILE *f = strcmp(name, "-") ? fopen(at ? at + 1 : name, "r") : stdin;
  int n = 0, c;
  while (f && (c = getc(f)) != EOF) n += c == '\\n';
  printf("%d\\n", n);
  return 0;
}
`
}

describe('a file that is written again after it was complete', { skip, timeout: 120_000 }, () => {
  const stages = {
    make: { out: ['f'], rules: [{ name: 'f', committed: 'on_close', mode: 'update' }] },
    use: { in: ['f'], out: ['sum'] },
  }
  const seen = 'until [ -e $MILLRACE_PLACE/seen ]; do sleep 0.02; done'
  const use = 'cat f > sum; echo > $MILLRACE_PLACE/seen'

  for (const [needs, make] of [
    ['dd', `seq 1 10 > f; ${seen}; echo x | dd of=f conv=notrunc 2> /dev/null`],
    ['dd', `seq 1 10 > f; ${seen}; echo x >> f`],
    ['dd', `seq 1 10 > f; ${seen}; seq 1 3 > f`],
    ['dd', `seq 1 10 > f; ${seen}; seq 1 3 > g; mv g f`],
    ['ar', `echo a > a; echo b > b; ar rcs f a; ${seen}; ar rcs f b`],
  ] as const)
    test(
      `its earlier reader is reported: ${make.replace(seen, '…')}`,
      { skip: !hasCommand(needs) },
      async () => {
        const { code, told } = await run({ stages, steps: { make, use }, extra: { permanent: ['sum'] } })
        assert.equal(code, 1, told)
        assert.match(told, /step 'make' changed 'f' too late: .*use had opened it before/)
      },
    )

  // On another node there is a copy of what was complete first, read or not: a change is always reported.
  test(
    'is not reported when nothing changed, or when it was read only afterwards',
    { skip: isApart },
    async () => {
      const { code, told } = await run({
        stages: {
          make: {
            out: ['f', 'g', 'ready'],
            rules: [
              { name: 'f', committed: 'on_close' },
              { name: 'g', committed: 'on_close' },
            ],
          },
          use: { in: ['f', 'g', 'ready'], out: ['sum'] },
        },
        steps: {
          make: `seq 1 10 > f; seq 1 3 > g; seq 1 5 >> g; ${seen}; : >> f; echo > ready`,
          use: 'cat f > sum; echo > $MILLRACE_PLACE/seen; cat ready g >> sum',
        },
        extra: { permanent: ['sum'] },
      })
      assert.equal(code, 0, told)
      assert.doesNotMatch(told, /too late/)
    },
  )
})
