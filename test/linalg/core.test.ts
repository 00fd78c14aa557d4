import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
mkdirSync(join(root, 'test', 'tmp'), { recursive: true })
const folder = mkdtempSync(join(root, 'test', 'tmp', 'core-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A library that chooses a core when it is loaded, as OpenBLAS does; its potrf tells the width of that core's vectors. */
const LIBRARY = `
#include <stdlib.h>
#include <string.h>
static const char *core;
__attribute__((constructor)) static void choose(void) {
    const char *asked = getenv("OPENBLAS_CORETYPE");
    core = !asked ? CHOSEN : !strcmp(asked, "SkylakeX") ? "SkylakeX" : !strcmp(asked, "Haswell") ? "Haswell" : "Nehalem";
}
char *openblas_get_corename(void) { return (char *)core; }
void dgemm_(void) {}
void dtrsm_(void) {}
void dgetrf_(void) {}
void dpotrf_(void *half, void *n, void *a, void *lda, int *info) {
    *info = !strcmp(core, "SkylakeX") ? 512 : !strcmp(core, "Haswell") ? 256 : 128;
}
`
const PROGRAM = `
import { Worker, isMainThread } from 'node:worker_threads'
import { prepareKernels } from ${JSON.stringify(join(root, 'dist', 'linalg.js'))}
const kernels = await prepareKernels()
console.log(kernels.potrf(1, new Float64Array(1)), process.env.OPENBLAS_CORETYPE ?? 'unset')
if (isMainThread) new Worker(new URL(import.meta.url))
`
const flags = readFileSync('/proc/cpuinfo', 'utf8')
const has = (...names: string[]): boolean => names.every(name => new RegExp(`\\b${name}\\b`).test(flags))
const widest = has('avx512f', 'avx512dq', 'avx512bw', 'avx512vl') ? 512 : has('avx2', 'fma') ? 256 : 128

function widthWith(chosen: string, environment: Record<string, string> = {}): string[] {
  const path = join(folder, `lib${chosen}.so`)
  writeFileSync(join(folder, 'blas.c'), LIBRARY)
  execFileSync('cc', ['-shared', '-fPIC', `-DCHOSEN="${chosen}"`, '-o', path, join(folder, 'blas.c')])
  writeFileSync(join(folder, 'program.mjs'), PROGRAM)
  const { OPENBLAS_CORETYPE: _, ...rest } = process.env
  const { stdout, stderr } = spawnSync(process.execPath, [join(folder, 'program.mjs')], {
    env: { ...rest, MILLRACE_BLAS: path, ...environment },
    encoding: 'utf8',
  })
  assert.equal(stderr, '')
  return stdout.trim().split('\n')
}

test('a library that does not know this CPU uses the vectors that it has, in all threads', () => {
  for (const old of ['Prescott', 'Nehalem'])
    assert.deepEqual(widthWith(old), [`${widest} unset`, `${widest} unset`])
})

test('what the library or the user chose for good reason stays', () => {
  assert.deepEqual(widthWith('SkylakeX'), ['512 unset', '512 unset'])
  assert.deepEqual(widthWith('Prescott', { OPENBLAS_CORETYPE: 'Nehalem' }), ['128 Nehalem', '128 Nehalem'])
})
