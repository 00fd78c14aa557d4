/** A small workflow of our own, in WfFormat: two tasks side by side, then one that reads what both made. */
export const sample = (): Sample => ({
  name: 'sample',
  schemaVersion: '1.5',
  workflow: {
    specification: {
      tasks: [
        {
          name: 'left',
          id: 'left_1',
          parents: [],
          children: ['join_3'],
          inputFiles: ['in'],
          outputFiles: ['a'],
        },
        {
          name: 'right',
          id: 'right_2',
          parents: [],
          children: ['join_3'],
          inputFiles: ['in'],
          outputFiles: ['b'],
        },
        {
          name: 'join',
          id: 'join_3',
          parents: ['left_1', 'right_2'],
          children: [],
          inputFiles: ['a', 'b'],
          outputFiles: ['c'],
        },
      ],
      files: [
        { id: 'in', sizeInBytes: 1e6 },
        { id: 'a', sizeInBytes: 2e6 },
        { id: 'b', sizeInBytes: 3e6 },
        { id: 'c', sizeInBytes: 4e6 },
      ],
    },
    execution: {
      makespanInSeconds: 30,
      tasks: [
        { id: 'left_1', runtimeInSeconds: 10, avgCPU: 100, command: { program: 'left', arguments: [] } },
        { id: 'right_2', runtimeInSeconds: 20, avgCPU: 50 },
        { id: 'join_3', runtimeInSeconds: 5 },
      ],
    },
  },
})

export interface Sample {
  name: string
  schemaVersion: string
  workflow: {
    specification: { tasks: SampleTask[]; files: { id: string; sizeInBytes: number }[] }
    execution: { makespanInSeconds: number; tasks: Record<string, unknown>[] }
  }
}

interface SampleTask {
  name: string
  id: string
  parents: string[]
  children: string[]
  inputFiles: string[]
  outputFiles: string[]
}
