import type { Registry } from '../../flow/language/registry.ts'
import { clean } from '../../report/text.ts'

/** Targets and rules of a workflow, with where each is written: what can be asked for, and what `--force-rule` takes. */
export function listLines({ targets, rules }: Registry): string[] {
  const lines: string[] = []
  if (targets.size > 0) lines.push('targets')
  for (const { name, files, body, site } of targets.values()) {
    const what = body ? 'found out when it runs' : `${files.length} ${files.length === 1 ? 'file' : 'files'}`
    lines.push(`  ${clean(name)}  (${what}, ${clean(String(site))})`)
  }
  if (rules.length > 0) lines.push('rules')
  for (const { name, outputs, site } of rules) {
    const made = outputs.map(({ pattern }) => pattern.text).join(' ')
    const shown = name === outputs[0]?.pattern.text ? made : `${name}: ${made}`
    lines.push(`  ${clean(shown)}  (${clean(String(site))})`)
  }
  return lines.length > 0 ? lines : ['the workflow has no targets and no rules']
}
