// A tmpfs of a few megabytes and a folder on disk below it. Mounting needs root.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rule, skip, step, Workflow } from './harness.ts'

const mount = (dir: string, size: string): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', dir]).status === 0
const unmount = (dir: string): void => void spawnSync('umount', ['-l', dir])

const canMount = (): boolean => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-mount-'))
  const works = mount(dir, '1m')
  if (works) unmount(dir)
  rmSync(dir, { recursive: true, force: true })
  return works
}

export const skipSmall: string | false =
  skip ||
  (process.getuid?.() !== 0 && 'mounting a small tmpfs needs root') ||
  (!canMount() && 'mount does not work here')

export interface Small {
  /** The small file system; the managed directory is `memory/files`. */
  memory: string
  layer: string
}

export const withSmallMemory = async (size: string, body: (small: Small) => Promise<void>): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'mr-'))
  const memory = join(root, 'memory')
  const layer = join(root, 'layer')
  mkdirSync(memory)
  mkdirSync(layer)
  try {
    if (!mount(memory, size)) throw new Error('mount failed')
    mkdirSync(join(memory, 'files'))
    await body({ memory, layer })
  } finally {
    unmount(memory)
    rmSync(root, { recursive: true, force: true })
  }
}

/** A board over it: step P writes what begins with g (readable as it grows), u (when complete), e (at the end). */
export const withSmallWorkflow = (
  size: string,
  body: (workflow: Workflow, small: Small) => Promise<void>,
): Promise<void> =>
  withSmallMemory(size, async small => {
    const plan = [
      `layer\t${small.layer}`,
      'grace\t0.2',
      step(0, 'P'),
      step(1, 'C'),
      rule('file', 'g*', '0', 'on_close:1', 'no_update'),
      rule('file', 'u*', '0', 'on_close:1', 'update'),
      rule('file', 'e*', '0', 'on_termination:0', 'no_update'),
    ]
    const workflow = new Workflow(plan, join(small.memory, 'files'))
    try {
      await body(workflow, small)
    } finally {
      workflow.board(['destroy', '--force'])
    }
  })
