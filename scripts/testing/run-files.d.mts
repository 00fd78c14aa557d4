export function runFiles(
  node: string,
  names: readonly string[],
  options: {
    limits: { test: number; file: number; end: number }
    atOnce: number
    environment?: NodeJS.ProcessEnv
    /** Takes what the watcher says; the tests themselves print nothing then. */
    tell?: (line: string) => void
  },
): Promise<{ failed: string[]; left: string[]; problem: string | null }>
