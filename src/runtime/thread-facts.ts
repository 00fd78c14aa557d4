import { modulePath, taskModules } from '../model/definition.ts'

/** What threads load before their first task, here and on other machines. */
export function threadFacts(entry: string | null) {
  const modules = [...taskModules()]
  const all = entry ? [...modules, entry] : modules
  const throughTsx = process.execArgv.some(argument => /[\\/]tsx[\\/]|^tsx\b/.test(argument))
  const typescript = throughTsx || all.some(module => /\.[cm]?tsx?$/.test(modulePath(module)))
  return { typescript, modules, entry }
}
