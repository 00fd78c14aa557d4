import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import type { BuildOptions, BuildResult, OnResolveArgs, OnResolveResult, Plugin } from 'esbuild'

interface Esbuild {
  build(options: BuildOptions): Promise<BuildResult>
  stop(): Promise<void>
}

export interface Source {
  readonly path: string
  /** Of its content; null when it was not there. */
  readonly digest: string | null
}

interface Made {
  /** All that the modules depend on, the workflow file first. */
  readonly sources: readonly Source[]
  readonly modules: readonly string[]
}

/** What means something else, or nothing, in a module that lies elsewhere. */
const BOUND = /\bimport\s*\.\s*meta\b|\bimport\s*\(|\b(?:require|__dirname|__filename|module|exports)\b/

/** Settings that change what the name of a package means. */
const RENAMES = /"(?:paths|baseUrl|extends)"/

/**
 * The workflow file and its own modules as JavaScript that can lie in `folder`, one to one, with the code that the
 * loader would give. Null when they do what only the loader can do.
 */
export async function compile(path: string, folder: string, packageFile: string): Promise<Made | null> {
  const root = dirname(path)
  const settings = settingsFiles(root)
  const tsconfig = settings.find(isFile)
  const isRenamed = tsconfig !== undefined && RENAMES.test(readFileSync(tsconfig, 'utf8'))
  const paths = [path]
  const sources = settings.map(sourceAt)
  const modules: string[] = []
  const esbuild = createRequire(packageFile)('esbuild') as Esbuild
  const found = ({ kind, path: wanted, importer, resolveDir }: OnResolveArgs): OnResolveResult | null => {
    if (kind === 'entry-point') return { path: wanted }
    if (kind !== 'import-statement') return null
    if (!wanted.startsWith('.')) {
      const isSame = isBuiltin(wanted) || wanted === 'millrace/flow'
      return isSame || (isPackage(wanted) && !isRenamed && dirname(importer) === root)
        ? { path: wanted, external: true }
        : null
    }
    const local = moduleAt(resolve(resolveDir, wanted))
    if (local === null) return null
    if (!paths.includes(local)) paths.push(local)
    return { path: `./${paths.indexOf(local)}.mjs`, external: true }
  }
  let isPossible = true
  const plugin: Plugin = {
    name: 'millrace',
    setup: ({ onResolve }) =>
      onResolve({ filter: /.*/ }, args => {
        const result = found(args)
        if (!result) isPossible = false
        return result ?? { path: args.path, external: true }
      }),
  }
  try {
    for (let i = 0; i < paths.length; i++) {
      const source = sourceAt(paths[i] as string)
      // Before it is compiled: what changes meanwhile is compiled again the next time.
      sources.splice(i, 0, source)
      if (BOUND.test(readFileSync(source.path, 'utf8'))) return null
      const { outputFiles } = await esbuild.build({
        entryPoints: [source.path],
        outfile: join(folder, `${i}.mjs`),
        plugins: [plugin],
        ...(tsconfig === undefined ? { tsconfigRaw: '{}' } : { tsconfig }),
        // The same as the loader's, because the code of a function is part of what makes a file up to date.
        target: `node${process.versions.node}`,
        minifyWhitespace: true,
        keepNames: true,
        bundle: true,
        treeShaking: false,
        format: 'esm',
        platform: 'node',
        sourcemap: 'inline',
        sourcesContent: false,
        absWorkingDir: root,
        logLevel: 'silent',
        write: false,
      })
      if (!isPossible) return null
      modules.push(outputFiles?.[0]?.text ?? '')
    }
    return { sources, modules }
  } catch {
    // The loader says what is wrong.
    return null
  } finally {
    await esbuild.stop()
  }
}

/** Tasks of the library itself are found by threads under the name of their module, which must not be another. */
const isPackage = (name: string): boolean => /^[@\w][\w./@-]*$/.test(name) && !/^millrace(?:\/|$)/.test(name)

/** The TypeScript file that is meant by the path of an import. */
function moduleAt(path: string): string | null {
  const extension = extname(path)
  const meant = /^\.m?ts$/.test(extension)
    ? path
    : /^\.m?js$/.test(extension)
      ? `${path.slice(0, -2)}ts`
      : `${path}.ts`
  return isFile(meant) ? realpathSync(meant) : null
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

/** Where settings of the compiler could be, up to where they are. */
function settingsFiles(folder: string): string[] {
  const files: string[] = []
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, 'tsconfig.json')
    files.push(file)
    if (isFile(file) || at === dirname(at)) return files
  }
}

export const digest = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

export function digestOf(path: string): string | null {
  try {
    return digest(readFileSync(path))
  } catch {
    return null
  }
}

const sourceAt = (path: string): Source => ({ path, digest: digestOf(path) })
