import type { ParsedLimits } from './options/process-limits.ts'

/** What a command's function may return: the arguments of the program, the program first. */
export type Argv = readonly (string | number)[]

/** A value, or a function of the arguments of the call. */
type Given<T> = T | ((...args: readonly unknown[]) => T) | undefined

/** What a command has that a function has not. Front ends that define commands fill it in. */
export interface CommandForm {
  readonly cwd?: Given<string>
  readonly env?: Given<Readonly<Record<string, string>>>
  /** Positions of the file parameters that are its standard streams. */
  readonly stdin?: number | undefined
  readonly stdout?: number | undefined
  readonly stderr?: number | undefined
  readonly exitCodes?: readonly number[] | ((code: number) => boolean) | undefined
  /** Its arguments are shown nowhere. */
  readonly secret?: boolean | undefined
  readonly limits: ParsedLimits | null
  /** It is started by mpirun; CPUs of each process. */
  readonly mpi?: { readonly cpus: number } | undefined
  readonly hooks?: CommandHooks
  /** It is this step of a coordination file, whose rules are about its files. */
  readonly step?: string | undefined
}

/** What a front end, such as that of workflow files, has to say while a command of its own runs. */
export interface CommandHooks {
  /**
   * Asked when all inputs are there. Gives the command; or `made` when it has done the work itself, or `kept`
   * when the files that are in place already are right. A signal is made for those who ask for it.
   */
  begin(args: readonly unknown[], signal: () => AbortSignal): Promise<Argv | 'made' | 'kept'>
  /**
   * Everything is written aside and will be moved into place next. Throws what is missing; gives the sizes of plain
   * files, in the order of the paths.
   */
  beforeCommit(
    args: readonly unknown[],
    paths: readonly (string | null)[],
  ): Promise<readonly (number | null | undefined)[]>
  /** How large a file is that is read, where that is known. */
  bytesOf(path: string): number | null
  /** How the output in this slot is written in the source: `bam/{s}.bam`. */
  written(args: readonly unknown[], slot: number): string
  /** The output in this slot is complete before the command has ended. */
  released(args: readonly unknown[], slot: number, path: string): Promise<void>
}
