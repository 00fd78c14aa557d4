// Small files are a feature: the median stays under 150 lines, nine of ten under 400, none over 500.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './shared.mjs'

const sizes = ['src', 'preload', 'dashboard']
  .flatMap(folder => {
    try {
      return readdirSync(join(root, folder), { recursive: true }).map(name => join(folder, name))
    } catch {
      return []
    }
  })
  .filter(name => /\.(ts|tsx|c|h)$/.test(name))
  .map(name => ({ name, lines: readFileSync(join(root, name), 'utf8').split('\n').length }))
  .sort((a, b) => a.lines - b.lines)

const at = share => sizes[Math.min(sizes.length - 1, Math.floor(sizes.length * share))]
const limits = [
  ['median', at(0.5), 150],
  ['nine of ten', at(0.9), 400],
  ['largest', at(1), 500],
]
let failed = false
for (const [what, file, limit] of limits) {
  if (file && file.lines > limit) {
    console.error(`file sizes: ${what} is ${file.lines} lines (${file.name}), over the limit of ${limit}`)
    failed = true
  }
}
process.exit(failed ? 1 : 0)
