// Watches test files from outside. test/now.mjs says which test runs; a test that hangs is named here, with what it waits for
// and its processes, and its file is ended with all that it started. So is what a file leaves behind when it ends.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, end, family, isAlive } from './processes.mjs'

const LOOK_EVERY_MS = 1000

export class Watcher {
  #folder = mkdtempSync(join(tmpdir(), 'millrace-tests-'))
  #timer = null
  #limits
  #tell
  /** When files were first seen to have ended, with processes left. */
  #ended = new Map()
  #asked = new Map()
  /** What was left behind, per file, as told. */
  left = []

  /** The limits are in milliseconds: of a test or hook, of a file, and for what a file started to end after it. */
  constructor(limits, tell = line => console.error(line)) {
    this.#limits = limits
    this.#tell = tell
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS)
  }

  /** For the test runner. */
  get environment() {
    return { TESTS_FOLDER: this.#folder }
  }

  look() {
    for (const name of readdirSync(this.#folder)) {
      if (!name.endsWith('.json')) continue
      const file = this.#read(name)
      if (isAlive(file.pid)) this.#check(file)
      else this.#clean(file)
    }
  }

  /** All files have ended: waits for what they started, and removes the folder. */
  async close() {
    clearInterval(this.#timer)
    for (;;) {
      this.look()
      if (!readdirSync(this.#folder).some(name => name.endsWith('.json'))) break
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    rmSync(this.#folder, { recursive: true })
  }

  #read(name) {
    return JSON.parse(readFileSync(join(this.#folder, name), 'utf8'))
  }

  #check(file) {
    const now = Date.now()
    const late = (file.running.length > 0 ? file.running : [file.before]).find(
      ({ since, limit = this.#limits.test }) => now - since > limit,
    )
    if (late === undefined && now - file.began <= this.#limits.file) return
    const asked = this.#asked.get(file.pid)
    if (asked === undefined) {
      this.#asked.set(file.pid, now)
      try {
        process.kill(file.pid, 'SIGUSR2')
      } catch {
        // It has just ended.
      }
    } else if (now - asked >= LOOK_EVERY_MS) {
      const current = late ?? file.running.at(-1) ?? file.before
      const seconds = Math.round((now - current.since) / 1000)
      const place = file.running.length > 0 ? `in '${current.name}'` : `after '${current.name}'`
      const why = late === undefined ? `, and the file took ${Math.round((now - file.began) / 1000)} s` : ''
      const answer = `${file.pid}.waits`
      const what = existsSync(join(this.#folder, answer))
        ? `it waits for ${this.#read(answer).join(', ') || 'nothing'}`
        : 'it does not answer'
      this.#tell(`HANGS: ${file.file}, ${place} for ${seconds} s${why}; ${what}; ended with its processes:`)
      this.#end(file)
    }
  }

  #clean(file) {
    const first = this.#ended.get(file.pid) ?? Date.now()
    this.#ended.set(file.pid, first)
    const processes = family(file.pid, line(this.#folder, file))
    if (processes.length > 0) {
      if (Date.now() - first < this.#limits.end) return
      this.#tell(`LEFT BEHIND by ${file.file}, and ended:`)
      this.left.push(file.file)
      this.#end(file)
    }
    for (const ending of ['json', 'waits'])
      rmSync(join(this.#folder, `${file.pid}.${ending}`), { force: true })
  }

  #end(file) {
    const mark = line(this.#folder, file)
    for (const one of family(file.pid, mark)) this.#tell(describe(one))
    end(file.pid, mark)
  }
}

const line = (folder, file) => `TEST_RUN=${join(folder, String(file.pid))}`
