import type { ToThread } from './protocol.ts'

/** Memory that a task writes in place, or shares with others that do: what is needed of it on another machine. */
export interface PlacedMemory {
  /** Which buffer of the record, and the part of it that is meant. */
  readonly blob: number
  readonly offset: number
  readonly length: number
  /** What the task leaves there comes back. */
  readonly isWritten: boolean
  /** Several tasks write it at one time. */
  readonly isShared: boolean
}

/** A task for a thread on another machine. */
export interface RemoteTask {
  readonly id: number
  readonly record: Uint8Array
  readonly length: number
  readonly blobs: readonly ArrayBufferLike[]
  readonly placed: readonly PlacedMemory[]
  /** What it wrote in place stays, also when it fails: it is not tried again. */
  readonly keepsFailed: boolean
  /** Buffers of results from this size on stay on the machine until they are wanted elsewhere; 0: none. Bytes. */
  readonly staysFrom: number
}

/** The coordinator's side of a compute thread, here or on another machine. */
export interface ThreadPort {
  /** Takes tasks in this form where the thread is on another machine; null for threads of this process. */
  readonly sendTask: ((task: RemoteTask) => number) | null
  /** Asks for a task back; `answer` hears whether it had not begun, unless the thread ends before. */
  readonly askBack: ((position: number, answer: (isBack: boolean) => void) => void) | null
  readonly largest: number
  sendRecord(bytes: Uint8Array, length: number): number | null
  announce(): void
  readonly messages: number
  sendCounted(
    message: Extract<ToThread, { type: 'task' | 'kind' | 'memory' | 'environment' | 'forget-list' }>,
    transfer?: readonly ArrayBuffer[],
  ): void
  send(message: ToThread, transfer?: readonly ArrayBuffer[]): void
  readonly began: number
  hurry(asMessage?: boolean): boolean
  revoke(position: number): boolean
  isTaken(position: number): boolean
  drain(looksAgain?: boolean): void
  readonly isReady: boolean
  readonly isStillborn: boolean
  /** `kill` was called. */
  readonly isKilled: boolean
  /** The machine was lost, and the thread with it: no task is to blame. */
  readonly isCutOff: boolean
  whenReady(go: () => void): void
  end(): Promise<void>
  checkAlive(isStuck: () => void): void
  kill(reason: string): void
}
