import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** Undefined when the package is there, else why it is missing; never a guess of what it would do. */
export function isInstalled(name: string): string | undefined {
  try {
    require.resolve(name)
    return undefined
  } catch {
    return `the package ${name} is not installed`
  }
}
