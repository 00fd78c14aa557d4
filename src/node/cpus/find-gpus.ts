import { readFileSync, readdirSync } from 'node:fs'

/**
 * The ids of the GPUs that this process may use: those that a scheduler named in CUDA_VISIBLE_DEVICES or
 * ROCR_VISIBLE_DEVICES, else those that the driver of NVIDIA or AMD shows.
 */
export function findGpus(environment: NodeJS.ProcessEnv = process.env, root = ''): string[] {
  const named = environment['CUDA_VISIBLE_DEVICES'] ?? environment['ROCR_VISIBLE_DEVICES']
  if (named !== undefined) {
    return named.split(',').flatMap(id => (id.trim() === '' || id.trim() === '-1' ? [] : [id.trim()]))
  }
  const nvidia = names(`${root}/dev`).filter(name => /^nvidia\d+$/.test(name))
  if (nvidia.length > 0) return numbered(nvidia.length)
  const nodes = `${root}/sys/class/kfd/kfd/topology/nodes`
  return numbered(names(nodes).filter(node => isGpu(`${nodes}/${node}/gpu_id`)).length)
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i))

/** CPUs are listed there too, with the id 0. */
function isGpu(path: string): boolean {
  try {
    return Number(readFileSync(path, 'utf8')) > 0
  } catch {
    return false
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
