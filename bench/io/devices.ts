import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Devices that are slow in a known way. The caller closes them. */

export interface SlowDevice {
  /** The folder on it, or the socket that it listens on. */
  path: string
  close(): void
}

const open = new Set<() => void>()
let isWatching = false

/** Loop devices and mounts outlive their process, so they are closed however it ends. */
function closeAtEnd(close: () => void): () => void {
  const once = (): void => {
    if (open.delete(once)) close()
  }
  if (!isWatching) {
    isWatching = true
    process.on('exit', () => open.forEach(one => one()))
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))
  }
  open.add(once)
  return once
}

/** A loop device with a limit of bytes per second, set by the cgroup of block devices. Needs root. */
export interface ThrottledDisk extends SlowDevice {
  /** What has to be written where, to make it as fast as this. */
  throttle(megabytesPerSecond: number): { file: string; text: string }
}

const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

const throttleFolder = (): string | undefined =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' '))
    .find(([, , type, options]) => type === 'cgroup' && options?.split(',').includes('blkio'))?.[1]

/** Why there can be no throttled disk here; undefined if there can. */
export function throttleMissing(): string | undefined {
  if (process.getuid?.() !== 0) return 'a throttled disk needs root'
  return throttleFolder() === undefined ? 'there is no cgroup v1 for block devices' : undefined
}

export function throttledDisk(megabytesPerSecond: number, size = 2 ** 30): ThrottledDisk {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-disk-'))
  const [image, path] = [join(folder, 'image'), join(folder, 'mnt')]
  writeFileSync(image, '')
  truncateSync(image, size)
  mkdirSync(path)
  let device = ''
  let isMounted = false
  const numbers = (): string => run('lsblk', '-no', 'MAJ:MIN', device).split('\n')[0]?.trim() ?? ''
  const throttle = (rate: number, way = 'write'): { file: string; text: string } => ({
    file: join(throttleFolder() as string, `blkio.throttle.${way}_bps_device`),
    text: `${numbers()} ${Math.round(rate * 1e6)}`,
  })
  const limit = (rate: number): void => {
    for (const way of ['write', 'read']) {
      const { file, text } = throttle(rate, way)
      writeFileSync(file, text)
    }
  }
  const close = closeAtEnd(() => {
    if (device !== '') limit(0)
    // A program that was stopped may still be writing: then it goes when that ends.
    if (isMounted) run('umount', '--lazy', path)
    if (device !== '') run('losetup', '-d', device)
    isMounted = false
    device = ''
    rmSync(folder, { recursive: true, force: true })
  })
  try {
    device = run('losetup', '-f', '--show', image)
    run('mkfs.ext4', '-q', '-O', '^has_journal', device)
    run('mount', device, path)
    isMounted = true
    limit(megabytesPerSecond)
  } catch (error) {
    close()
    throw error
  }
  return { path, throttle, close }
}

/** The device of seek-device.mjs. */
export async function seekingDevice(megabytesPerSecond: number): Promise<SlowDevice> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-seek-'))
  const path = join(folder, 'socket')
  const program = fileURLToPath(new URL('./seek-device.mjs', import.meta.url))
  const child = spawn(process.execPath, [program, path, String(megabytesPerSecond)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve)
    child.once('exit', code => reject(new Error(`the device ended with ${code}`)))
  })
  return {
    path,
    close: closeAtEnd(() => {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    }),
  }
}
