import { parentPort, workerData } from 'node:worker_threads'
import { pathToFileURL } from 'node:url'
import { enableTypescript } from '../run/typescript.ts'

/** What a compute thread does with a TypeScript module, and nothing else. */
await enableTypescript()
const { answer } = (await import(pathToFileURL(workerData as string).href)) as { answer: unknown }
parentPort?.postMessage(answer)
