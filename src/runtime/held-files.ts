import { lstatSync } from 'node:fs'
import type { Datum, Version } from '../core/data/datum.ts'
import type { Away } from '../storage/away.ts'
import { Location } from '../storage/location.ts'

/** A file that is on nodes only, and what it was made of. */
export interface Stayed {
  readonly version: Version
  readonly location: Location
  readonly away: Away
  readonly held: Held
}

/** What a task read that made files which are on nodes only: it is kept until they are not. */
interface Held {
  open: number
  readonly versions: readonly Version[]
  readonly made: readonly Stayed[]
}

/** Versions of files that are kept because files were made of them that may be lost. */
export class HeldFiles {
  readonly #hold: (version: Version) => void
  readonly #letGo: (version: Version) => void
  readonly #bring: (version: Version) => Promise<void>
  readonly #all = new Set<Stayed>()
  readonly #byVersion = new Map<Version, Set<Held>>()
  readonly #byDatum = new Map<Datum, Set<Version>>()

  constructor(
    hold: (version: Version) => void,
    letGo: (version: Version) => void,
    bring: (version: Version) => Promise<void>,
  ) {
    this.#hold = hold
    this.#letGo = letGo
    this.#bring = bring
  }

  get all(): readonly Stayed[] {
    return [...this.#all]
  }

  /** These were made of those. */
  add(outputs: readonly Version[], inputs: readonly Version[]): void {
    const versions = [...new Set(inputs)].filter(({ datum }) => datum.path !== null)
    const made: Stayed[] = []
    const held: Held = { open: outputs.length, versions, made }
    for (const version of outputs) {
      const location = version.value as Location
      const away = location.away as Away
      const stayed: Stayed = { version, location, away, held }
      made.push(stayed)
      this.#all.add(stayed)
      away.over = () => this.#over(stayed)
      away.bringSoon = () => this.#bring(version)
    }
    for (const version of versions) this.#add(version, held)
  }

  #add(version: Version, held: Held): void {
    const known = this.#byVersion.get(version)
    if (known) known.add(held)
    else {
      this.#byVersion.set(version, new Set([held]))
      const { datum } = version
      this.#byDatum.set(datum, (this.#byDatum.get(datum) ?? new Set()).add(version))
    }
    this.#hold(version)
  }

  #over(stayed: Stayed): void {
    const { held } = stayed
    if (!this.#all.delete(stayed) || --held.open > 0) return
    for (const version of held.versions) {
      const others = this.#byVersion.get(version)
      if (!others?.delete(held)) continue
      if (others.size === 0) this.#forget(version)
      this.#letGo(version)
    }
  }

  #forget(version: Version): void {
    this.#byVersion.delete(version)
    const versions = this.#byDatum.get(version.datum)
    versions?.delete(version)
    if (versions?.size === 0) this.#byDatum.delete(version.datum)
  }

  /** What was made of the version and may be lost. */
  madeOf(version: Version): readonly Stayed[] {
    const held = this.#byVersion.get(version)
    return held ? [...held].flatMap(({ made }) => made).filter(one => this.#all.has(one)) : []
  }

  /** Versions of the datum that nothing but this keeps. */
  obsolete(datum: Datum): readonly Version[] {
    const versions = this.#byDatum.get(datum)
    return versions ? [...versions].filter(({ obsolete }) => obsolete) : []
  }

  /** Tasks read it, or will. */
  isRead(version: Version): boolean {
    return version.readers > (this.#byVersion.get(version)?.size ?? 0)
  }
}

/** It is to come to the path that the user named. */
export const isResult = ({ superseded, datum }: Version): boolean =>
  !superseded && !datum.removed && !datum.aside

/** What tells whether the program has changed a file that no task has made; null where that is not known. */
export function lookOf({ value, datum }: Version): string | null {
  if (value instanceof Location || datum.path === null) return null
  const found = lstatSync(datum.path, { bigint: true, throwIfNoEntry: false })
  return found?.isFile() ? `${found.ino}.${found.size}.${found.mtimeNs}` : null
}
