import { readdirSync } from 'node:fs'
import { MillraceError } from '../../core/errors.ts'

/** What stands for bytes that are no text. */
const NO_TEXT = '\uFFFD'

/** Names are texts in a workflow: one that is none could not be opened by the name that was read. */
export function expectText(folder: string, name: string): void {
  if (!name.includes(NO_TEXT)) return
  for (const bytes of readdirSync(folder, { encoding: 'buffer' })) {
    if (bytes.toString() !== name || Buffer.from(name).equals(bytes)) continue
    throw new MillraceError('MR_FLOW_NAME', `a name in ${folder} is not UTF-8: ${shown(bytes)}`)
  }
}

const shown = (bytes: Buffer): string =>
  [...bytes]
    .map(byte =>
      byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
    )
    .join('')
