import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { globalState } from './global-state.ts'

/** Modules are known everywhere by the URLs that they have for the coordinator. */

/** Where this thread has to load a module from. */
export function urlThere(url: string): string {
  const { moduleRoot } = globalState
  if (moduleRoot === null || !url.startsWith('file:')) return url
  return pathToFileURL(join(moduleRoot, fileURLToPath(url))).href
}

/** The name of a module that this thread has loaded. */
export function urlHere(url: string): string {
  const { moduleRoot } = globalState
  if (moduleRoot === null || !url.startsWith('file:')) return url
  const path = fileURLToPath(url)
  return path.startsWith(`${moduleRoot}/`) ? pathToFileURL(path.slice(moduleRoot.length)).href : url
}
