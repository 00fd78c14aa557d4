import type { Decoder } from '../../model/encoding/decode.ts'
import type { Encoder } from '../../model/encoding/encode.ts'
import type { Granted } from '../../model/granted.ts'

/** The CPUs and GPUs of a task, and the add-on that binds its thread. */
export interface TaskGrant extends Granted {
  readonly addon: string
}

export function writeGrant(encoder: Encoder, { cpus, bound, gpus, addon }: TaskGrant): void {
  encoder.double(cpus)
  encoder.varint(bound?.length ?? 0)
  for (const cpu of bound ?? []) encoder.varint(cpu)
  encoder.varint(gpus.length)
  for (const id of gpus) encoder.text(id)
  encoder.text(addon)
}

export function readGrant(decoder: Decoder): TaskGrant {
  const cpus = decoder.double()
  const bound = Array.from({ length: decoder.varint() }, () => decoder.varint())
  const gpus = Array.from({ length: decoder.varint() }, () => decoder.text())
  return { cpus, bound: bound.length > 0 ? bound : null, gpus, addon: decoder.text() }
}

/** Keeps the thread that it is called in on the CPUs of its task. */
export class ThreadBinding {
  #bind: ((cpus: readonly number[]) => string) | null = null
  #all: readonly number[] = []
  /** As a list; '' for all CPUs. */
  #bound = ''

  /** Called before each task. */
  for(grant: TaskGrant | null): void {
    const bound = grant?.bound ?? null
    const wanted = bound?.join(',') ?? ''
    if (wanted === this.#bound) return
    if (bound && grant && !this.#load(grant.addon)) return
    this.#bind?.(bound ?? this.#all)
    this.#bound = wanted
  }

  #load(path: string): boolean {
    if (this.#bind) return true
    try {
      const module = {
        exports: {} as { bind: (cpus: readonly number[]) => string; affinity: () => number[] },
      }
      process.dlopen(module, path)
      this.#all = module.exports.affinity()
      this.#bind = module.exports.bind
      return true
    } catch {
      // A task that cannot be bound runs where the system puts it.
      return false
    }
  }
}
