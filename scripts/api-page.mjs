// Writes docs/api.md from the declarations of the package: `npm run build && node scripts/api-page.mjs`.
// A test compares the page with what this script makes, so that every exported name is on it.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './shared.mjs'

const types = join(root, 'dist', 'types')

/** Sections of the page, with the names in reading order. A name that is in none of them is an error. */
const ENTRIES = [
  {
    title: 'millrace',
    file: 'index.d.ts',
    sections: {
      'Defining tasks':
        'task taskMethods command implement TaskFunction TaskOptions SingleOptions SeveralOptions CommandOptions CommonOptions MethodOptions TaskMethod TaskDecorator Defaults Argv Cost',
      Directions:
        'IN OUT INOUT CONCURRENT COMMUTATIVE FILE_IN FILE_OUT FILE_INOUT FILE_CONCURRENT FILE_COMMUTATIVE FILES_IN FILES_OUT FILES_INOUT DIR_IN DIR_OUT DIR_INOUT Direction',
      'The program':
        'main waitOn waitOnFile openFile barrier group GroupOptions snapshot cancel remove removeFile Future shared reduce ref Ref granted Granted',
      'Early release and streams': 'ready committed Stream stream StreamFile StreamOptions',
      'MPI tasks':
        'mpi Comm MpiBody MpiOptions MpiListOptions MpiOneOptions MpiEachOptions MpiProgram ProcessRange Layout MpiArray ReduceOp Received Request MpiFile MpiFileOptions MpiView Hdf5File Hdf5Dataset Hdf5Block',
      Bandwidth: 'auto AutoBandwidth BandwidthOption',
      Policies: 'usePolicy fifo lifo fifoData Policy Place Situation',
      'The run': 'configure RunOptions observe Observer EventHandlers RunEvent',
      Errors: 'MillraceError ErrorCode TaskError CancelledError ExitError',
    },
  },
  {
    title: 'millrace/flow',
    file: 'flow/index.d.ts',
    sections: {
      'Rules and targets':
        'rule target RuleOptions RuleCost auto AutoBandwidth BandwidthValue RuleContext Action InputSpec Parameters TargetBody TargetContext',
      Commands: 'sh ShellCommand Argv Word',
      Files: 'dir keep temp optional protect protected stream Marked Marks FileSpec FileShape',
      Names: 'glob wildcards expand constrain',
      'Parameters and data': 'param settings table',
    },
  },
  {
    title: 'millrace/linalg',
    file: 'linalg/index.d.ts',
    sections: { Kernels: 'kernels prepareKernels Kernels GemmOptions Triangle QrKernels TpmqrtOptions' },
  },
]

/** Exported names of a declaration file: name -> the text of its declarations, with their comments. */
function exportsOf(file, seen = new Set()) {
  if (seen.has(file)) return new Map()
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  const found = new Map()
  const from = specifier => resolve(dirname(file), specifier.replace(/\.ts$/, '.d.ts'))
  for (const [, specifier] of text.matchAll(/^export \* from '([^']+)'/gm))
    for (const [name, declaration] of exportsOf(from(specifier), seen)) found.set(name, declaration)
  for (const [, list, specifier] of text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)) {
    const there = exportsOf(from(specifier))
    for (const item of list
      .split(',')
      .map(part => part.trim())
      .filter(Boolean)) {
      const [, own, alias] = /^(?:type )?(\w+)(?: as (\w+))?$/.exec(item)
      found.set(alias ?? own, there.get(own) ?? '')
    }
  }
  for (const { name, declaration } of declarations(text))
    found.set(name, found.has(name) ? `${found.get(name)}\n${declaration}` : declaration)
  return found
}

/** Statements begin at the start of a line, and a comment before one belongs to it. */
function* declarations(text) {
  const pattern =
    /((?:^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?)^(export (?:declare )?(?:abstract )?(?:function|const|class|interface|type) (\w+)[\s\S]*?)(?=^(?:export|import|type|interface|declare|\/\*\*|\})|(?![\s\S]))/gm
  for (const match of text.matchAll(pattern)) {
    const [, comment, body, name] = match
    const end = /\{\s*$/m.test(body.split('\n')[0]) && !body.trimEnd().endsWith('}') ? '}' : ''
    yield { name, declaration: `${comment}${body.trimEnd()}${end ? `\n${end}` : ''}` }
  }
}

/** Private members and what is marked as internal are not of the API. */
const clean = declaration =>
  declaration
    .replace(/^\s+\/\*\*(?:(?!\*\/)[\s\S])*@internal(?:(?!\*\/)[\s\S])*\*\/\n.*\n/gm, '')
    .replace(/^\s+#private;\n/gm, '')
    .replace(/^    /gm, '  ')
    .replace(/^export (?:declare )?/gm, '')

const block = text => ['```typescript', text, '```', '']

function section(title, names, all, used) {
  const lines = [`### ${title}`, '']
  const constants = []
  for (const name of names) {
    if (!all.has(name))
      throw new Error(`docs/api.md: ${name} is not exported any more: take it out of scripts/api-page.mjs`)
    used.add(name)
    const text = clean(all.get(name)).trim()
    if (/^const \w+ = /m.test(text)) constants.push(text)
    else lines.push(`#### ${name}`, '', ...block(text))
  }
  if (constants.length > 0) lines.splice(2, 0, ...block(constants.join('\n')))
  return lines
}

export function apiPage() {
  const lines = [
    '# API reference',
    '',
    'Every name that the package exports, with its type. This page is made from the declarations by',
    '`scripts/api-page.mjs`; a test keeps it up to date. The [guide](guide.md) explains tasks with examples, and',
    '[workflow files](flow.md) explains rules. Types that are named here and not listed are helpers of these types.',
    '',
  ]
  for (const { title, file, sections } of ENTRIES) {
    const all = exportsOf(join(types, file))
    const used = new Set()
    lines.push(`## ${title}`, '')
    for (const [name, names] of Object.entries(sections))
      lines.push(...section(name, names.split(' '), all, used))
    const missing = [...all.keys()].filter(name => !used.has(name))
    if (missing.length > 0)
      throw new Error(`docs/api.md: no section in scripts/api-page.mjs has ${missing.join(', ')} of ${title}`)
  }
  return `${lines.join('\n').trimEnd()}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(root, 'docs', 'api.md'), apiPage())
