import { sh } from '../../src/flow/shell/sh.ts'
import type { ShellCommand } from '../../src/flow/shell/sh.ts'

export const BAIT = ': >ran'

/** Values that would be run, expanded or taken for something else if they were not quoted right. */
export const VALUES = [
  `$(${BAIT})`,
  `\`${BAIT}\``,
  `a[$(${BAIT})]`,
  `a[$(${BAIT})]=1`,
  `x=a[$(${BAIT})]`,
  `<(${BAIT})`,
  `; ${BAIT};`,
  `\n${BAIT}\n`,
  `' ; ${BAIT}; '`,
  `" ; ${BAIT}; "`,
  `'$(${BAIT})'`,
  `"$(${BAIT})"`,
  `}$(${BAIT})`,
  `} ; ${BAIT} #`,
  `) ; ${BAIT} #`,
  `)) ; ${BAIT} #`,
  `]] ; ${BAIT} #`,
  `]=1 ${BAIT} #`,
  `\\$(${BAIT})`,
  `\\`,
  `EOF\n${BAIT}\n`,
  `($(${BAIT}))`,
  `"; system(": >ran"); "`,
  `s/.*/: >ran/e`,
  `'; open("ran","w"); '`,
  `-v`,
  `-va[$(${BAIT})]`,
  `eval`,
  `A=1`,
  `if`,
  `~`,
  `*`,
  `{a,b}`,
  `a,b`,
  `1..3`,
  `$HOME`,
  `!!`,
  `#`,
  `it's "it"`,
  `x y`,
  `é\t\u{1F30A}`,
  ``,
  `HOME`,
  `010`,
  `-1`,
  `7`,
]

interface Context {
  readonly make: (value: string) => ShellCommand
  readonly prints: (value: string) => string
  /** Other shells do not know it. */
  readonly isBash?: true
}

const printed = (value: string): string => `${value}.`

/** Values reach the program as they are. */
export const EXACT: Record<string, Context> = {
  word: { make: v => sh`printf '%s.' ${v}; :`, prints: printed },
  'part of a word': { make: v => sh`printf '%s.' x${v}y; :`, prints: v => `x${v}y.` },
  'two in a word': { make: v => sh`printf '%s.' ${v}${v}; :`, prints: v => `${v}${v}.` },
  list: { make: v => sh`printf '%s.' ${[v, 'a', v]}; :`, prints: v => `${v}.a.${v}.` },
  single: { make: v => sh`printf '%s.' 'a ${v} b'; :`, prints: v => `a ${v} b.` },
  double: { make: v => sh`printf '%s.' "a ${v} b"; :`, prints: v => `a ${v} b.` },
  'beside a star': { make: v => sh`printf '%s.' none*${v}; :`, prints: v => `none*${v}.` },
  'in braces': { make: v => sh`printf '%s.' {x${v}}; :`, prints: v => `{x${v}}.` },
  'after a tilde': { make: v => sh`printf '%s.' ~${v}x; :`, prints: v => `~${v}x.` },
  assignment: { make: v => sh`x=${v}; printf '%s.' "$x"`, prints: printed },
  'longer assignment': { make: v => sh`x=a:${v}; printf '%s.' "$x"`, prints: v => `a:${v}.` },
  environment: { make: v => sh`X=${v} printenv X; printf .`, prints: v => `${v}\n.` },
  export: { make: v => sh`export X=x${v}; printf '%s.' "$X"`, prints: v => `x${v}.` },
  substitution: { make: v => sh`printf '%s.' "$(printf '%s.' ${v})"`, prints: v => `${v}..` },
  'in quotes in a substitution': {
    make: v => sh`printf '%s.' $(printf '%s.' "${v}" >&2)`,
    prints: () => '.',
  },
  'in two substitutions': {
    make: v => sh`printf '%s.' "$(echo "$(printf '%s.' 'x${v}')" | cat)"`,
    prints: v => `x${v}..`,
  },
  subshell: { make: v => sh`(printf '%s.' ${v})`, prints: printed },
  block: { make: v => sh`{ printf '%s.' ${v}; }`, prints: printed },
  function: { make: v => sh`f() { printf '%s.' ${v} "$1"; }; f ${v}`, prints: v => `${v}.${v}.` },
  if: { make: v => sh`if [ x = ${v} ]; then :; else printf '%s.' ${v}; fi`, prints: printed },
  loop: { make: v => sh`for i in ${v}; do printf '%s.' "$i"; done`, prints: printed },
  case: { make: v => sh`case x${v} in x${v}) printf '%s.' ${v};; esac`, prints: printed },
  default: { make: v => sh`printf '%s.' "\${none:-x${v}}"; :`, prints: v => `x${v}.` },
  'default, unquoted': { make: v => sh`printf '%s.' \${none:-x${v}}; :`, prints: v => `x${v}.` },
  suffix: { make: v => sh`y=a${v}; printf '%s.' \${y%${v}}; :`, prints: () => 'a.' },
  alternative: { make: v => sh`y=1; printf '%s.' "\${y+x${v}}"; :`, prints: v => `x${v}.` },
  'here-document': {
    make: v => sh`cat <<EOF
a ${v} b
EOF
printf '%s.' ${v}`,
    prints: v => `a ${v} b\n${v}.`,
  },
  'quoted here-document': {
    make: v => sh`cat <<'EOF'
a ${v} b
EOF
printf '%s.' ${v}`,
    prints: v => `a ${v} b\n${v}.`,
  },
  'here-string': { make: v => sh`cat <<< ${v}; printf .`, prints: v => `${v}\n.`, isBash: true },
  array: {
    make: v => sh`a=(${v} x ${[v]}); printf '%s.' "\${a[@]}"`,
    prints: v => `${v}.x.${v}.`,
    isBash: true,
  },
  'element of an array': {
    make: v => sh`a[1]=${v}; printf '%s.' "\${a[1]}"`,
    prints: printed,
    isBash: true,
  },
  'process substitution': { make: v => sh`cat <(printf '%s.' ${v})`, prints: printed, isBash: true },
  'inner shell': { make: v => sh`sh -c 'printf "%s." "$1"' sh ${v}; :`, prints: printed },
  'word for a program text': {
    make: v => sh`awk 'BEGIN { printf "%s.", ARGV[1] }' x${v}; :`,
    prints: v => `x${v}.`,
  },
  'input of a loop': {
    make: v => sh`printf '%s\n' x${v} | while IFS= read -r x; do printf '%s.' "$x"; done`,
    prints: v =>
      `x${v}`
        .split('\n')
        .map(line => `${line}.`)
        .join(''),
  },
  command: { make: v => sh`: ${v} && printf '%s.' ${v}`, prints: printed },
  'after arithmetic': { make: v => sh`n=$((1 << 2)); printf '%s.' $n ${v}`, prints: v => `4.${v}.` },
  'nested command': {
    make: v => sh`printf '%s.' ${sh`a ${v}`}; ${sh`printf '%s.' ${v}`}`,
    prints: v => `a.${v}.${v}.`,
  },
  file: { make: v => sh`[ -e ./none/${v} ] || printf '%s.' ${v}`, prints: printed },
}

/** The shell, or a program, would evaluate any other value than a number. */
export const ONLY_NUMBERS: Record<string, (value: string) => ShellCommand> = {
  arithmetic: v => sh`echo $((${v}))`,
  'arithmetic in quotes': v => sh`echo "$((1 + ${v}))"`,
  'arithmetic command': v => sh`((n = ${v}))`,
  'arithmetic loop': v => sh`for ((i = 0; i < ${v}; i++)); do :; done`,
  'trimmed in quotes': v => sh`x=1; echo "\${x#${v}}"`,
  'trimmed at the end in quotes': v => sh`x=1; echo "\${x%%${v}}"`,
  replaced: v => sh`x=1; echo "\${x//${v}/b}"`,
  replacement: v => sh`x=1; echo "\${x//1/${v}}"`,
  'replacement, unquoted': v => sh`x=1; echo \${x//1/${v}}`,
  offset: v => sh`x=1; echo "\${x:${v}}"`,
  'length of a part': v => sh`x=1; echo \${x:0:${v}}`,
  subscript: v => sh`a=(1); echo "\${a[${v}]}"`,
  'subscript, assigned': v => sh`a[${v}]=1`,
  'subscript in a list': v => sh`a=([${v}]=1)`,
  'default of an element': v => sh`echo "\${a[0]:-${v}}"`,
  transformation: v => sh`x=1; echo "\${x@${v}}"`,
  test: v => sh`if [[ ${v} -eq 0 ]]; then :; fi`,
  'test of a variable': v => sh`[[ -v ${v} ]]`,
  'test, second': v => sh`[[ a == b || ${v} -lt 0 ]]`,
  'test in brackets': v => sh`[[ ( 1 -eq "${v}" ) ]]`,
  'old test of a variable': v => sh`[ -v ${v} ]`,
  let: v => sh`let x=${v}`,
  'let in quotes': v => sh`let "x = ${v}"`,
  'let, escaped': v => sh`\let x=${v}`,
  'let, in pieces': v => sh`l"e"t x=${v}`,
  'let after a word': v => sh`if true; then command let x=${v}; fi`,
  'let after an assignment': v => sh`A=1 >none let x=${v}`,
  'let in a substitution': v => sh`echo "$(let x=${v})"`,
  'let in a nested command': v => sh`let ${sh`x=${v}`}`,
  'nested let': v => sh`${sh`let`} x=${v}`,
  'let in a function': v => sh`function f { let x=${v}; }; f`,
  'let in a case': v => sh`case x in x) let x=${v};; esac`,
  eval: v => sh`eval ${v}`,
  'prompt of a trace': v => sh`PS4=${v}; set -x; :`,
  'file that shells run': v => sh`BASH_ENV=${v} bash -c :`,
  'exported, run by shells': v => sh`export BASH_ENV=x${v}; bash -c :`,
  'file of an environment': v => sh`env ENV=${v} sh -i -c :`,
  'run in this shell': v => sh`. /dev/stdin <<< ${v}`,
  'printed for this shell': v => sh`source <(echo ${v})`,
  'file for a shell': v => sh`bash <(printf '%s' "${v}")`,
  'text for a lock': v => sh`flock . -c "echo ${v}"`,
  'text for a record': v => sh`script -qc "echo ${v}" /dev/null`,
  'text for tar': v => sh`tar cf /dev/null --checkpoint=1 --checkpoint-action=exec="${v}" .`,
  'input of make': v => sh`make -f - <<< "all:; echo ${v}"`,
  'eval in quotes': v => sh`eval "echo ${v}"`,
  'declared integer': v => sh`declare -i n=${v}`,
  'assigned to an integer': v => sh`declare -i n; n=${v}`,
  'assigned before': v => sh`f() { n=${v}; }; typeset -i n; f`,
  'assigned to a reference': v => sh`declare -n n; n=${v}`,
  'declared name': v => sh`declare ${v}`,
  'exported name': v => sh`export ${v}`,
  'declared array': v => sh`declare -a a=${v}`,
  'printed to a variable': v => sh`printf -v ${v} x`,
  'read to a variable': v => sh`read ${v} <<< x`,
  'read with options': v => sh`echo | read -r "${v}"`,
  mapfile: v => sh`mapfile ${v} < /dev/null`,
  unset: v => sh`unset ${v}`,
  trap: v => sh`trap "${v}" EXIT`,
  alias: v => sh`alias x=${v}`,
  getopts: v => sh`getopts a ${v} -a`,
  compgen: v => sh`compgen -W ${v}`,
  indirect: v => sh`x=${v}; echo "\${!x}"`,
  'indirect name': v => sh`echo "\${!${v}}"`,
  'name in a loop': v => sh`for ${v} in a; do :; done`,
  'inner shell': v => sh`sh -c ${v}`,
  'text in an inner shell': v => sh`timeout 5 bash -ec "echo ${v}"`,
  'text in an inner shell, quoted': v => sh`env sh -c 'echo "${v}"'`,
  'shell for xargs': v => sh`echo a | xargs -n 1 sh -c "echo ${v}"`,
  'text for awk': v => sh`awk 'BEGIN { print "${v}" }'`,
  'text for awk, with options': v => sh`awk -F : -v a=b 'BEGIN { print "${v}" }'`,
  'text for sed': v => sh`echo a | sed -e s/a/${v}/`,
  'text for sed, with options': v => sh`echo a | sed -i 's/a/${v}/'`,
  'text for python': v => sh`python3 -c 'print("${v}")'`,
  'text for perl': v => sh`perl -ne 'print "${v}"' < /dev/null`,
  'document for a shell': v => sh`sh <<EOF
echo ${v}
EOF`,
  'document for a shell behind a pipe': v => sh`cat <<'EOF' | bash -s
echo ${v}
EOF`,
  'string for a shell': v => sh`bash <<< ${v}`,
  'printed for a shell': v => sh`echo ${v} | sh`,
  descriptor: v => sh`echo a >&${v}`,
  set: v => sh`set ${v}`,
}

// prettier-ignore
export const FRAGMENTS = [
  ' ', '\n', ';', '|', '&&', '(', ')', '((', '))', '{ ', ' }', '}', '"', "'", '\\', '`', '$', '$(', '$((', '${x', '${x:-',
  '${x#', '${x//', '${a[', '${!x}', ']', '[', '[[ ', ' ]]', ' -eq 1', '=', 'x=', 'a[', ']=', 'a=(', 'let ', 'eval ', 'echo ',
  'printf ', '-v ', 'declare -i ', 'export ', 'read ', 'case x in ', 'x) ', ';; ', 'esac', 'if ', 'then ', 'fi', 'for i in ',
  'do ', 'done', '<<EOF\n', '\nEOF\n', "<<'EOF'\n", '<<-EOF\n', '<<<', '>', '<(', '#', '# ', '~', '*', '$x', "$'", '$"', '!', '1', 'x',
  'sh -c ', 'f() ', 'function f ', 'test ', '[ ', 'unset ', 'trap ',
]
