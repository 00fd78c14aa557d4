/** What a thread does with the process-like things that it has of its own: environment and standard streams. */

/** Takes over what the program has set since this thread began. */
export function setEnvironment(changes: readonly [string, string | undefined][]): void {
  for (const [name, value] of changes) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
}

/** What was printed has gone out: a thread hands it over piece by piece, as the coordinator asks for it. */
export async function flushOutput(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>(resolve => stream.write('', () => resolve()))
  }
}
