import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder, millrace } from '../cli/folder.ts'
import type { Ended } from '../cli/folder.ts'

/** What programs of these tests begin with: each task writes down that it ran. */
export const HEAD = `
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
export const ran = (what) => appendFileSync(join(process.cwd(), 'ran.log'), what + '\\n')
`

/** A folder with a program that can be run again and again. */
export class Program {
  readonly folder: string

  constructor(files: Record<string, string>) {
    this.folder = makeFolder({ 'ran.mjs': HEAD, ...files })
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8')
  }

  append(name: string, text: string): void {
    appendFileSync(this.path(name), text)
  }

  /** Runs it, keeps what it makes, and gives what it printed and which tasks ran. */
  async run(...options: string[]): Promise<Ended & { ran: string[] }> {
    rmSync(this.path('ran.log'), { force: true })
    const args = ['run', 'app.mjs', '--checkpoint', 'all', '--progress', 'plain', ...options]
    const ended = await millrace(this.folder, args)
    return { ...ended, ran: this.ran() }
  }

  ran(): string[] {
    return this.ranInOrder().sort()
  }

  ranInOrder(): string[] {
    const log = this.path('ran.log')
    return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []
  }
}
