import type { Arm } from '../harness.ts'
import { disk, memory, slowDisk, type Place } from './place.ts'
import { batch, streamed, type Workflow } from './workflow.ts'

const arm = (system: string, place: () => Place, run: (place: Place) => Promise<number>): Arm => ({
  system,
  get missing() {
    return place().missing
  },
  run: () => run(place()),
})

export const BATCH_MEMORY = 'batch on tmpfs'
export const BATCH_DISK = 'batch on disk'
export const BATCH_SLOW = 'batch on a disk of 60 MB/s, read cold'

export const batchInMemory = (workflow: Workflow): Arm => arm(BATCH_MEMORY, memory, at => batch(at, workflow))
export const batchOnDisk = (workflow: Workflow): Arm => arm(BATCH_DISK, disk, at => batch(at, workflow))
export const batchOnSlowDisk = (workflow: Workflow): Arm =>
  arm(BATCH_SLOW, slowDisk, at => batch(at, workflow))

export const UPDATE = 'millrace update'
export const NO_UPDATE = 'millrace no_update'
export const NO_UPDATE_SLOW = 'millrace no_update, inputs and results on the slow disk'

export const streamedWhole = (workflow: Workflow): Arm =>
  arm(UPDATE, memory, at => streamed(at, workflow, 'update'))
export const streamedAsItGrows = (workflow: Workflow): Arm =>
  arm(NO_UPDATE, memory, at => streamed(at, workflow, 'no_update'))
export const streamedFromSlowDisk = (workflow: Workflow): Arm =>
  arm(NO_UPDATE_SLOW, slowDisk, at => streamed(at, workflow, 'no_update'))
