import { Session } from 'node:inspector'
import { setFlagsFromString } from 'node:v8'

// Optimized code counts no calls, and what is compiled before has no counters.
setFlagsFromString('--no-opt')
const session = new Session()
session.connect()
ask('Profiler.enable')
ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

/**
 * How much is done, in steps that are the same on every machine: blocks of our code entered, as V8 counts them
 * for coverage, and elements that built-in functions of arrays pass over.
 */
export function countSteps(work: () => void, folder = '/src/core/'): number {
  ask('Profiler.takePreciseCoverage')
  const passed = countPassed()
  try {
    work()
  } finally {
    passed.end()
  }
  const { result } = ask('Profiler.takePreciseCoverage') as { result: Script[] }
  const ours = result.filter(script => script.url.includes(folder))
  const blocks = ours.flatMap(script => script.functions).flatMap(one => one.ranges)
  return blocks.reduce((sum, block) => sum + block.count, passed.end())
}

interface Script {
  url: string
  functions: { ranges: { count: number }[] }[]
}

function ask(method: string, parameters: object = {}): unknown {
  let answer: unknown
  session.post(method, parameters, (error, result) => {
    if (error) throw error
    answer = result
  })
  return answer
}

const PASSING = [
  'shift',
  'unshift',
  'splice',
  'slice',
  'indexOf',
  'includes',
  'concat',
  'join',
  'sort',
] as const

/** They are no code of ours, so nothing is counted within them. */
function countPassed(): { end: () => number } {
  let elements = 0
  const prototype = Array.prototype as unknown as Record<string, Function>
  const before = PASSING.map(name => [name, prototype[name] as Function] as const)
  for (const [name, original] of before) {
    prototype[name] = function (this: unknown[], ...given: unknown[]): unknown {
      elements += this.length
      return original.apply(this, given)
    }
  }
  return {
    end: () => {
      for (const [name, original] of before) prototype[name] = original
      return elements
    },
  }
}
