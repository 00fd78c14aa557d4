/** Run by `npm run build`, so that the first run after it does not have to wait for the compiler. */
import { addonPath } from './addon.ts'
import { buildLookTool } from './look-tool.ts'
import { spawnTool } from './spawn-tool.ts'

await buildLookTool()
await addonPath().catch(() => undefined)
await spawnTool().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error)
  process.stderr.write(`commands will be started by Node, which is slower: ${reason}\n`)
})
