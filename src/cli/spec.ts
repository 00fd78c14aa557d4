/** What the command line knows, as data: parser, help and suggestions are all made from these tables. */

export interface OptionSpec {
  readonly name: string
  readonly short?: string
  /** What stands for the value in help; without it the option is a flag. */
  readonly value?: string
  /** How a value is checked. @default any text */
  readonly kind?: 'count' | 'size' | 'choice'
  readonly choices?: readonly string[]
  readonly repeatable?: boolean
  /** Its value may be left out; where it is given, it comes as --NAME=VALUE. */
  readonly isOptional?: boolean
  /** Help has it on its second screen: `millrace help COMMAND --all`. */
  readonly isRare?: boolean
  /** `both`: also as `--no-NAME`; `only`: just so, for what is on unless it is switched off. */
  readonly negative?: 'both' | 'only'
  /** Lines of 52 columns at most. */
  readonly help: readonly string[] | ((machine: Machine) => readonly string[])
}

export interface OperandSpec {
  readonly name: string
  readonly required: boolean
  /** Takes all that follows. */
  readonly rest?: boolean
}

export interface CommandSpec {
  readonly name: string
  readonly summary: string
  readonly usage: string
  readonly operands: readonly OperandSpec[]
  readonly options: readonly OptionSpec[]
  /** What help says below the options. */
  readonly notes: readonly string[]
  readonly load: () => Promise<{ execute: (given: Given, command: string) => Promise<void> }>
}

/** What defaults depend on. */
export interface Machine {
  readonly cpus: number
  readonly memory: string
}

/** A command line that was understood. */
export interface Given {
  readonly flags: ReadonlyMap<string, boolean>
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly operands: readonly string[]
  /** What came after `--`. */
  readonly rest: readonly string[]
}

export const valueOf = ({ values }: Given, name: string): string | undefined => values.get(name)?.at(-1)
