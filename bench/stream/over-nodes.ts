/** Workflows whose steps are on several nodes: streamed, and in batch through a folder that all nodes share. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StepCommand } from '../../src/stream/index.ts'
import type { RunOptions } from '../../src/runtime/run-options.ts'
import type { StandardStreams } from '../../src/runtime/standard-output.ts'
import { streamRunOnNodes } from '../../src/runtime/streams/stream-run.ts'
import { packageVersion } from '../../src/runtime/version.ts'
import { programPath } from '../run-program.ts'
import { Namespaces } from './namespaces.ts'
import { stepProgram } from './workflow.ts'

const FIRST_PORT = 7070

/** A step of one instance. The bytes are those of its files. */
export interface PlacedStep {
  readonly name: string
  /** From 1. */
  readonly node: number
  readonly args: readonly string[]
  readonly inputs?: readonly string[]
  readonly reads?: number
  readonly outputs?: readonly string[]
  readonly writes?: number
}

export interface Spread {
  readonly nodes: number
  readonly folders?: readonly string[]
  /** In the order of a batch run. */
  readonly stages: readonly (readonly PlacedStep[])[]
}

export async function inFolder<T>(root: string, body: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(root, 'millrace-bench-nodes-'))
  try {
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export async function withNodes<T>(count: number, body: (nodes: Namespaces) => Promise<T>): Promise<T> {
  const nodes = Namespaces.make(count)
  try {
    return await body(nodes)
  } finally {
    nodes.end()
  }
}

export const seconds = async (body: () => Promise<void>): Promise<number> => {
  const began = performance.now()
  await body()
  return (performance.now() - began) / 1000
}

/** Bytes over TCP, and nothing else. Transfers that go on at once need a port each. */
export async function transfer(
  nodes: Namespaces,
  from: number,
  to: number,
  bytes: number,
  port = FIRST_PORT,
): Promise<void> {
  const wire = programPath('wire.mjs')
  await Promise.all([
    nodes.run(to, process.execPath, [wire, 'take', String(port), String(bytes)]),
    nodes.run(from, process.execPath, [wire, 'send', nodes.addressOf(to), String(port), String(bytes)]),
  ])
}

const shell = (words: readonly string[]): string => words.map(word => `'${word}'`).join(' ')

/**
 * Seconds from the begin of the first step to the end of the last: without starting the nodes, which all runs pay once.
 * It calls `during` once the steps run.
 */
export function streamedOver(spread: Spread, during?: (nodes: Namespaces) => void): Promise<number> {
  return withNodes(spread.nodes, nodes =>
    inFolder(tmpdir(), async place => {
      const steps = spread.stages.flat()
      const graph = steps.map(({ name, inputs, outputs = [] }) => ({
        name,
        ...(inputs === undefined ? {} : { input_stream: inputs }),
        output_stream: [...outputs, `end.${name}`],
        streaming: outputs.map(file => ({ name: file, committed: 'on_close', mode: 'no_update' })),
      }))
      const file = join(place, 'Config.json')
      writeFileSync(file, JSON.stringify({ name: 'bench', IO_Graph: graph, permanent: ['end.*'] }))
      const folders = spread.folders === undefined ? '' : `mkdir -p ${shell(spread.folders)}; `
      const commands = steps.map(({ name, node, args }): StepCommand => ({
        step: name,
        nodes: [nodes.nameOf(node)],
        run: `${folders}date +%s.%N > $MILLRACE_PLACE/begin.${name}; ${shell([stepProgram(), ...args])} && date +%s.%N > end.${name}`,
      }))
      let told = ''
      const streams: StandardStreams = {
        stdout: { write: () => true },
        stderr: { write: (text: string | Uint8Array) => ((told += String(text)), true) },
        goToSamePlace: () => false,
      }
      const run: RunOptions = { folder: place, progress: 'plain' }
      const options = { place, version: packageVersion(), run }
      const looking = setInterval(() => {
        if (existsSync(join(place, `begin.${steps[0]?.name}`))) during?.(nodes)
      }, 50)
      const code = await streamRunOnNodes(file, commands, nodes.specs, options, streams)
      clearInterval(looking)
      if (code !== 0 || told.includes('no direct connection')) throw new Error(told)
      const times = (what: string): number[] =>
        readdirSync(place)
          .filter(name => name.startsWith(`${what}.`))
          .map(name => Number(readFileSync(join(place, name), 'utf8')))
      return Math.max(...times('end')) - Math.min(...times('begin'))
    }),
  )
}

/**
 * Seconds for one stage after the other: what a step makes goes into the shared folder, and from there to the node of each
 * step that reads it. `far`: microseconds of each open and each close in that folder.
 */
export function batchOver(spread: Spread, far = 0): Promise<number> {
  const server = spread.nodes + 1
  return withNodes(server, nodes =>
    inFolder('/dev/shm', folder =>
      seconds(async () => {
        const files = join(folder, 'files')
        for (const name of ['', ...(spread.folders ?? [])]) mkdirSync(join(files, name), { recursive: true })
        const all = (body: (step: PlacedStep, i: number) => Promise<void>, stage: readonly PlacedStep[]) =>
          Promise.all(stage.map(body))
        const send = (from: number, to: number, bytes = 0, i = 0): Promise<void> =>
          bytes === 0 ? Promise.resolve() : transfer(nodes, from, to, bytes, FIRST_PORT + i)
        for (const stage of spread.stages) {
          // Steps of one node that read the same get it once.
          const first = ({ node, inputs }: PlacedStep): PlacedStep | undefined =>
            stage.find(one => one.node === node && one.inputs?.join() === inputs?.join())
          await all((step, i) => send(server, step.node, first(step) === step ? step.reads : 0, i), stage)
          const wait = far === 0 ? [] : ['-l', String(far)]
          await all(step => nodes.run(step.node, stepProgram(), [...wait, ...step.args], files), stage)
          await all((step, i) => send(step.node, server, step.writes, i), stage)
        }
      }),
    ),
  )
}
