import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { urlThere } from './module-root.ts'

/**
 * Loads a module of the program. A `.cts` file is required: on Node 20, `import` of one that requires an ES module
 * fails ("request for … is not in cache").
 */
export async function loadModule(name: string): Promise<Record<string, unknown>> {
  const url = urlThere(name)
  if (!/^file:.*\.cts$/.test(url)) return (await import(url)) as Record<string, unknown>
  const path = fileURLToPath(url)
  return createRequire(path)(path) as Record<string, unknown>
}
