import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../../core/errors.ts'

/** The page as the build leaves it: beside the bundles, or in dist/ when this runs from its sources. */
const PLACES = ['./dashboard/', '../../../dist/dashboard/']

const FILES = {
  'index.html': 'text/html; charset=utf-8',
  'app.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
} as const

export type PageFile = keyof typeof FILES

export const isPageFile = (name: string): name is PageFile => Object.hasOwn(FILES, name)
export const typeOf = (name: PageFile): string => FILES[name]

export function readPageFile(name: PageFile): string {
  for (const place of PLACES) {
    const path = join(fileURLToPath(new URL(place, import.meta.url)), name)
    if (existsSync(path)) return readFileSync(path, 'utf8')
  }
  throw new MillraceError('MR_DASHBOARD', `the page is not there: ${name}`, {
    hint: 'Build it with `npm run build`.',
  })
}
