// `npm run bench -- NAME [--json]`: runs one benchmark of bench/, or lists them.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { build, ensureInstalled, root, run } from './shared.mjs'

const [name, ...rest] = process.argv.slice(2)
const folder = join(root, 'bench')
const names = readdirSync(folder)
  .filter(file => file.endsWith('.bench.ts'))
  .map(file => file.replace('.bench.ts', ''))

if (!name || !existsSync(join(folder, `${name}.bench.ts`))) {
  console.error(name ? `no benchmark is called ${name}` : 'usage: npm run bench -- NAME [--json]')
  console.error(`benchmarks: ${names.join(', ')}`)
  process.exit(2)
}
ensureInstalled()
build()
run(process.execPath, ['--expose-gc', '--import', 'tsx', join(folder, `${name}.bench.ts`), ...rest])
