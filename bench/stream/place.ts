import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where the files of one way of running lie. */
export interface Place {
  root: string
  /** Files are written through and read cold, as on storage that several machines share. */
  cold: boolean
  missing?: string | undefined
}

const run = (program: string, args: string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 }).trim()

export const memory = (): Place => ({ root: '/dev/shm', cold: false })
export const disk = (): Place => ({ root: tmpdir(), cold: false })

const MB_PER_SECOND = 60
let made: Place | undefined

/** A disk of 60 MB/s: a loop device with a throttle. It goes when the benchmark ends. */
export function slowDisk(): Place {
  made ??= makeSlowDisk()
  return made
}

function makeSlowDisk(): Place {
  const group = /^\S+ (\S*\/blkio) cgroup /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1]
  const without = (missing: string): Place => ({ root: '', cold: true, missing })
  if (process.getuid?.() !== 0) return without('a slow disk needs root')
  if (group === undefined || !existsSync(join(group, 'blkio.throttle.write_bps_device')))
    return without('a slow disk needs the blkio throttle of cgroup v1')
  const folder = mkdtempSync(join(tmpdir(), 'millrace-slow-'))
  const image = join(folder, 'image')
  const root = join(folder, 'disk')
  const undo: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })]
  const clean = (): void => {
    for (const step of undo.splice(0).toReversed()) step()
  }
  process.on('exit', clean)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))
  try {
    writeFileSync(image, '')
    truncateSync(image, 4 * 2 ** 30)
    const device = run('losetup', ['-f', '--show', image])
    undo.push(() => run('losetup', ['-d', device]))
    run('mkfs.ext4', ['-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', '-N', '300000', device])
    mkdirSync(root)
    run('mount', [device, root])
    undo.push(() => run('umount', ['-l', root]))
    const number = run('lsblk', ['-no', 'MAJ:MIN', device]).trim()
    for (const way of ['read', 'write'])
      writeFileSync(join(group, `blkio.throttle.${way}_bps_device`), `${number} ${MB_PER_SECOND * 1e6}`)
    undo.push(() => {
      for (const way of ['read', 'write'])
        writeFileSync(join(group, `blkio.throttle.${way}_bps_device`), `${number} 0`)
    })
    return { root, cold: true }
  } catch (error) {
    clean()
    return without(`no slow disk could be made: ${(error as Error).message.split('\n')[0]}`)
  }
}
