import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { shellQuote } from '../../general/shell-quote.ts'
import { millraceCommand } from './agent-command.ts'
import type { AgentOrders } from './agent-command.ts'

/** No line of the orders is this word. */
const END = 'END-OF-ORDERS'

/**
 * What a shell on another machine reads to start an agent there, from its standard input or from a file of this user alone:
 * nothing secret is among words that others can see. Where this Millrace is at the same path it is used; else bin/boot.cjs
 * gets it from the coordinator. `removes`: files that are not needed should the agent not start.
 */
export function agentScript(orders: AgentOrders, removes: readonly string[] = []): string {
  const command = millraceCommand()
  const root = dirname(dirname(command))
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const boot = readFileSync(join(root, 'bin', 'boot.cjs'), 'base64')
  const isHere = `[ -f ${shellQuote(command)} ] && grep -qF ${shellQuote(`"version": "${version}"`)} ${shellQuote(join(root, 'package.json'))}`
  const clean = removes.length === 0 ? '' : `rm -f ${removes.map(shellQuote).join(' ')}; `
  // Signals of a queue reach the agent itself, unless something has to be done after it.
  const [exec, after] = clean === '' ? ['exec ', ''] : ['', `code=$?\n[ $code = 0 ] || ${clean}exit $code\n`]
  return `given=${shellQuote(process.execPath)}
node="$given"
[ -x "$node" ] || node=node
if ! command -v "$node" > /dev/null; then
  echo "millrace: there is no Node on $(hostname): $given is not there, and the PATH has none" >&2
  ${clean}exit 127
fi
if ${isHere} 2> /dev/null; then
  set -- ${shellQuote(command)} agent
else
  set -- -e 'eval(Buffer.from("${boot}","base64").toString())'
fi
${exec}"$node" "$@" <<'${END}'
${JSON.stringify(orders)}
${END}
${after}`
}
