// The rules of random plays: which there can be, and which of them is about a name.
import fc from 'fast-check'
import { rule } from './harness.ts'

export type Commit =
  { kind: 'on_close' | 'on_termination' | 'on_n_files'; count: number } | { kind: 'on_file'; deps: string[] }
export type Rule = { commit: Commit; growing: boolean }
export type Rules = { f: Rule; g: Rule; d: Rule }

export const governed = (name: string): boolean => /^[fgd]/.test(name)

/** What lies in a directory that is complete with a number of files is complete when closed. */
export const ruleOf = (rules: Rules, name: string): Rule => {
  if (!name.startsWith('d')) return name.startsWith('f') ? rules.f : rules.g
  if (name === 'd' || rules.d.commit.kind !== 'on_n_files') return rules.d
  return { ...rules.d, commit: { kind: 'on_close', count: 1 } }
}

const counted = (kind: 'on_close' | 'on_termination' | 'on_n_files', counts: number[]): Commit[] =>
  counts.map(count => ({ kind, count }))
const ruleFrom = (commits: Commit[]): fc.Arbitrary<Rule> =>
  fc.record({ commit: fc.constantFrom(...commits), growing: fc.boolean() })
const plain = [...counted('on_close', [1, 2, 3]), ...counted('on_termination', [0, 1])]
export const rules: fc.Arbitrary<Rules> = fc.record({
  f: ruleFrom(plain),
  g: ruleFrom([['f0'], ['f1', 'f0'], ['d']].map(deps => ({ kind: 'on_file' as const, deps }))),
  d: ruleFrom([...counted('on_n_files', [1, 2, 3]), ...plain]),
})

export const ruleLine = (kind: 'file' | 'dir', pattern: string, { commit, growing }: Rule): string => {
  const mode = growing ? 'no_update' : 'update'
  return commit.kind === 'on_file'
    ? rule(kind, pattern, '0', commit.kind, mode, commit.deps.join(','))
    : rule(kind, pattern, '0', `${commit.kind}:${commit.count}`, mode)
}
