// Compiles src/ to dist/ with plain tsc, so that stack traces stay honest and there is nothing to tune.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, root, run, tool } from './shared.mjs'

ensureInstalled()
rmSync(join(root, 'dist'), { recursive: true, force: true })
run(process.execPath, [tool('typescript/bin/tsc'), '-p', 'tsconfig.json'])
