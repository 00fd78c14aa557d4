// Writes docs/errors.md from the error registry: `node --import tsx scripts/errors-page.mjs`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ERRORS } from '../src/core/errors.ts'
import { root } from './shared.mjs'

const lines = [
  '# Errors',
  '',
  'Every error that Millrace throws has a `code` that stays the same between versions, a `shortMessage` of one',
  'line that says what is wrong in this case, and a `hint` that says what to do. `TaskError` and',
  '`CancelledError` also have `task`, and `cause` is what lies behind. This page is made from the registry in',
  '`src/core/errors.ts`.',
  '',
]
for (const [code, { meaning, remedy }] of Object.entries(ERRORS)) lines.push(`## ${code}`, '', meaning, '', remedy, '')
writeFileSync(join(root, 'docs', 'errors.md'), lines.join('\n'))
