/** The two ways to start a program. */
export { NodeProcess, killNodeProcesses } from './node-process.ts'
export { SpawnedProcess } from './spawned-process.ts'
export { Spawner } from './spawner.ts'
export { builtSpawnTool, spawnTool } from '../../native/spawn-tool.ts'
