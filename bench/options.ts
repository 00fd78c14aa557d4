export interface BenchOptions {
  json: boolean
  strict: boolean
  rounds: number | null
  /** Parts of names of cases; none means all. */
  filters: string[]
}

export function readOptions(args: readonly string[]): BenchOptions {
  const options: BenchOptions = { json: false, strict: false, rounds: null, filters: [] }
  for (const argument of args) {
    const rounds = /^--rounds=([1-9]\d*)$/.exec(argument)
    if (argument === '--json') options.json = true
    else if (argument === '--strict') options.strict = true
    else if (rounds) options.rounds = Number(rounds[1])
    else if (argument.startsWith('-')) {
      console.error(`unknown option ${argument}; there are --json, --strict and --rounds=N`)
      process.exit(2)
    } else options.filters.push(argument)
  }
  return options
}
