import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { sh, textOf } from '../../src/flow/shell/sh.ts'
import type { ShellCommand } from '../../src/flow/shell/sh.ts'
import { shellArgv } from '../../src/flow/shell/argv.ts'

const run = (command: ShellCommand): string => {
  const [program = '', ...args] = shellArgv(command)
  const { stdout, stderr, status } = spawnSync(program, args, { encoding: 'utf8' })
  assert.equal(status, 0, `${command.text}: ${stderr}`)
  return stdout
}

const special = fc.constantFrom(
  ' ',
  "'",
  '"',
  '$',
  '`',
  '\\',
  '\n',
  '*',
  '~',
  '!',
  '#',
  ';',
  '&',
  '|',
  '-',
  '=',
  'é',
  '{a,b}',
)
const word = fc
  .array(fc.oneof(special, fc.string({ minLength: 1, maxLength: 3, unit: 'binary' })), { maxLength: 8 })
  .map(parts => parts.join('').replaceAll('\0', ''))
  // A text that is no Unicode cannot be passed to any program.
  .filter(text => text.isWellFormed())

test('words reach the program as they are, in every place of a command', () => {
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), word, (words, one) => {
      const plain = run(sh`/usr/bin/printf '%s\0' ${words} x${one}y`)
      assert.deepEqual(plain.split('\0').slice(0, -1), [...words, `x${one}y`])
      const quoted = run(sh`/usr/bin/printf '%s\0' "a ${one} b" 'c ${one} d' "$(printf %s ${one}x)"; true`)
      assert.deepEqual(quoted.split('\0').slice(0, -1), [`a ${one} b`, `c ${one} d`, `${one}x`])
    }),
    { numRuns: 60 },
  )
})

test('a command of words alone needs no shell, and means the same', () => {
  const file = 'a b'
  assert.deepEqual(sh`cp -p ${file} --to=${file}`.words, ['cp', '-p', 'a b', '--to=a b'])
  assert.deepEqual(sh`cat ${['x', 'y z']}`.words, ['cat', 'x', 'y z'])
  assert.deepEqual(sh`cat ${[]} end`.words, ['cat', 'end'])
  for (const command of [sh`cd /tmp`, sh`A=1 env`, sh`cat *`, sh`sort < ${file}`, sh`exit 3`]) {
    assert.equal(command.words, null, command.text)
  }
})

test('a text that is too long for one word of a command line means the same', () => {
  const names = Array.from({ length: 30_000 }, (_, i) => `a 'é\u{1F30A}' ${i}`)
  assert.equal(run(sh`printf '%s\n' ${names} | sort | md5sum; echo $# "$IFS" $-`).split('\n').length, 4)
  assert.equal(run(sh`printf '%s\0' ${names} | cat`), names.map(name => `${name}\0`).join(''))
  const [program = '', ...args] = shellArgv(sh`: ${names} | cat; false; true`)
  assert.notEqual(spawnSync(program, args).status, 0)
})

test('pipelines fail when a part of them fails, and so does a command in the middle', () => {
  for (const command of [sh`false | cat`, sh`false; true`]) {
    const [program = '', ...args] = shellArgv(command)
    assert.notEqual(spawnSync(program, args).status, 0, command.text)
  }
})

test('words reach a here-document as they are, and what follows it is quoted as usual', () => {
  fc.assert(
    fc.property(word, fc.boolean(), (given, isLast) => {
      const one = isLast ? `${given}\nEN\n` : given
      const open = run(sh`cat <<END | cat; printf '%s\0' ${one} $((1 << 2))
a ${one} b
${one} $((1 + 1))
END
printf '%s' "${one}"`)
      assert.equal(open, `a ${one} b\n${one} 2\n${one}\x004\0${one}`)
      const verbatim = run(sh`cat <<'A B' <<-"END"; printf %s ${one}
$x
A B
	$x ${one}
	END
`)
      assert.equal(verbatim, `$x ${one.replaceAll(/^\t+/gm, '')}\n${one}`)
    }),
    { numRuns: 40 },
  )
  const name = 'x'
  assert.throws(() => sh`cat <<END\n${'a\nEND\nrm x'}\nEND`, /MR_FLOW_SH/)
  assert.throws(
    () => sh`cat <<END
${'a\nEND\nrm x'}
END`,
    /end the here-document/,
  )
  assert.throws(
    () => sh`cat <<END
$(cat ${name})
END`,
    /MR_FLOW_SH/,
  )
  assert.equal(run(sh`cat <<< ${"it's"}; cat`), "it's\n")
})

test('in a here-document values may stand after a command, but not where its end is not certain', () => {
  const name = '$(echo no) `x` \\'
  const text = run(sh`cat <<EOF
$(printf %s "a)" '(' $((1 + 1)); (echo b)) \${HOME:+c} \`echo d\`
Name: ${name}
EOF
`)
  assert.equal(text, `a)(2b c d\nName: ${name}\n`)
  const inside = (refused: () => unknown): void => assert.throws(refused, /MR_FLOW_SH/)
  inside(
    () => sh`cat <<EOF
$(echo a; (echo b) ${name})
EOF`,
  )
  inside(
    () => sh`cat <<EOF
$(echo ")" ${name})
EOF`,
  )
  inside(
    () => sh`cat <<EOF
$(case x in x) echo ${name};; esac)
EOF`,
  )
  inside(
    () => sh`cat <<EOF
$(echo "$(echo ')' ${name})")
EOF`,
  )
  inside(
    () => sh`cat <<EOF
\${x:-${name}}
EOF`,
  )
  inside(
    () => sh`cat <<EOF
\`echo ${name}\`
EOF`,
  )
})

test('a << in arithmetic begins no document; where that is not certain, nothing can be put in', () => {
  const name = '$(echo no)'
  assert.equal(
    run(sh`(( n = 1 << 2 )); k=3
(( n = n << k ))
echo $n ${name} $((1 << ${2}))
echo ${name}`),
    `32 ${name} 4\n${name}\n`,
  )
  assert.equal(
    run(sh`( (cat <<END)
${name}
END
)`),
    `${name}\n`,
  )
  const refused = (command: () => unknown): void => assert.throws(command, /MR_FLOW_SH/)
  refused(
    () => sh`echo $[1<<k ]
cat ${name}`,
  )
  refused(
    () => sh`let n=1<<2
cat ${name}`,
  )
  refused(
    () => sh`echo "$((cat <<END) | cat)
${name}
END
"`,
  )
  refused(
    () => sh`((cat <<END
${name}
END
) | cat)`,
  )
})

test('nothing is put in after a $, with which it could be a command', () => {
  const name = '(echo no)'
  assert.throws(() => sh`echo "$${name}"`, /MR_FLOW_SH/)
  assert.throws(() => sh`echo $${name}`, /MR_FLOW_SH/)
  assert.throws(
    () => sh`cat <<END
$${name}
END`,
    /MR_FLOW_SH/,
  )
  assert.equal(run(sh`echo "\$${name}" '$${name}'`), `$${name} $${name}\n`)
})

test('where a shell finds the end of a quote otherwise than it seems, values are quoted for it or refused', () => {
  const refused = (command: () => unknown): void => assert.throws(command, /MR_FLOW_SH/)
  const value = 'a; echo $(echo no) `x`'
  refused(() => sh`echo "$(case x in x) echo ${value};; esac)"`)
  refused(() => sh`echo "\${x:-"${value}"}"`)
  refused(() => sh`echo $((${value}))`)
  refused(() => sh`echo $(("${'a[$(echo no)]'}"))`)
  refused(() => sh`((n = ${value}))`)
  refused(() => sh`printf $'a\'b' ${value}`)
  refused(() => sh`printf $'${value}'`)
  assert.equal(run(sh`echo $((${3} + ${'4'})) ${value}`), `7 ${value}\n`)
  assert.equal(run(sh`printf %s%s $'a\tb' ${value}`), `a\tb${value}`)
  assert.equal(run(sh`echo "\${x:-${value}}" "$(echo ${value})"`), `${value} ${value}\n`)
  assert.equal(run(sh`case ${value} in a*) echo ${value};; esac`), `${value}\n`)
})

test('what cannot be quoted is refused', () => {
  const name = 'x'
  assert.throws(() => sh`echo \`cat ${name}\``, /MR_FLOW_SH/)
  assert.throws(() => sh`true # ${name}`, /MR_FLOW_SH/)
  assert.throws(() => sh`echo ${undefined as never}`, /is undefined, not a word/)
  assert.throws(() => sh`echo ${'a\0b'}`, /zero character/)
})

test('backslashes reach the shell as they are written, and ${} can be escaped', () => {
  assert.equal(run(sh`printf 'a\tb\n'; x=1; echo \${x}`), 'a\tb\n1\n')
  assert.equal(textOf(['ls', 'a b', 3]), "ls 'a b' 3")
  assert.equal(run(sh`echo ${sh`$((1 + 2))`}`), '3\n')
})
