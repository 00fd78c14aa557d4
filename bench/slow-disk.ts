import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SlowDiskOptions {
  megabytes: number
  /** MB/s. */
  read: number
  write: number
  /** Memory, and with it page cache, of programs that are put into its group. */
  memory: number
}

let made = 0

/**
 * A file system of its own on a device that is as slow as asked for, and a group of processes with little
 * memory. Needs root and cgroups of version 1; everything is taken away again however the process ends.
 */
export class SlowDisk {
  readonly folder: string
  readonly #image: string
  readonly #device: string
  readonly #numbers: string
  readonly #group: string
  #isClosed = false

  constructor({ megabytes, read, write, memory }: SlowDiskOptions) {
    const base = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
    this.#image = join(base, 'image')
    this.folder = join(base, 'disk')
    mkdirSync(this.folder)
    const run = (program: string, ...args: string[]): string =>
      execFileSync(program, args, { encoding: 'utf8' }).trim()
    process.on('exit', this.#close)
    process.on('SIGINT', this.#interrupted)
    process.on('SIGTERM', this.#interrupted)
    // Blocks that are written for the first time are slower than others: so each is written once, and is there.
    run('dd', 'if=/dev/zero', `of=${this.#image}`, 'bs=1M', `count=${megabytes}`, 'conv=fsync', 'status=none')
    this.#device = run('losetup', '-f', '--show', this.#image)
    run('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', this.#device)
    run('mount', this.#device, this.folder)
    this.#numbers = run('lsblk', '-no', 'MAJ:MIN', this.#device)
    this.#throttle('read', read)
    this.#throttle('write', write)
    this.#group = join(controller('memory') as string, `millrace-bench-${process.pid}-${++made}`)
    mkdirSync(this.#group)
    writeFileSync(join(this.#group, 'memory.limit_in_bytes'), String(Math.floor(memory)))
  }

  /** A program that runs what it is given inside the group. */
  wrapper(program: string): string {
    const path = join(this.folder, '..', 'in-group.sh')
    writeFileSync(path, `#!/bin/sh\necho $$ > ${this.#group}/cgroup.procs\nexec ${program} "$@"\n`, {
      mode: 0o755,
    })
    return path
  }

  /** What was written is on the device, and nothing is in memory. */
  forget(): void {
    spawnSync('sync', ['-f', this.folder])
    writeFileSync('/proc/sys/vm/drop_caches', '3')
  }

  sync(): void {
    spawnSync('sync', ['-f', this.folder])
  }

  close(): void {
    this.#close()
    process.off('exit', this.#close)
    process.off('SIGINT', this.#interrupted)
    process.off('SIGTERM', this.#interrupted)
  }

  #throttle(direction: 'read' | 'write', megabytes: number): void {
    const file = join(controller('blkio') as string, `blkio.throttle.${direction}_bps_device`)
    writeFileSync(file, `${this.#numbers} ${megabytes * 1e6}`)
  }

  readonly #interrupted = (): void => process.exit(130)

  readonly #close = (): void => {
    if (this.#isClosed) return
    this.#isClosed = true
    const attempt = (action: () => unknown): void => {
      try {
        action()
      } catch {
        // Remove the rest nevertheless.
      }
    }
    attempt(() => this.#throttle('read', 0))
    attempt(() => this.#throttle('write', 0))
    attempt(() => spawnSync('umount', ['-l', this.folder]))
    if (this.#device) attempt(() => spawnSync('losetup', ['-d', this.#device]))
    if (this.#group) attempt(() => rmdirSync(this.#group))
    attempt(() => rmSync(join(this.folder, '..'), { recursive: true, force: true }))
  }
}

/** Where a controller of cgroups version 1 is mounted. */
function controller(name: string): string | null {
  const line = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map(one => one.split(' '))
    .find(([, , type, options]) => type === 'cgroup' && options?.split(',').includes(name))
  return line?.[1] ?? null
}

/** Why there can be no slow disk here; undefined when there can. */
export function slowDiskMissing(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root'
  if (!existsSync('/sbin/losetup') || !existsSync('/sbin/mkfs.ext4')) return 'needs losetup and mkfs.ext4'
  if (controller('memory') === null || controller('blkio') === null) return 'needs cgroups of version 1'
  return undefined
}
