import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after } from 'node:test'
import { chromium, type Browser, type Page } from 'playwright-core'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const path = process.env['CHROMIUM'] ?? PLACES.find(place => existsSync(place))

/** Why tests with a browser are skipped, or false. */
export const skip = path === undefined ? 'there is no Chromium (Debian: chromium)' : false

/** What does not happen in this time is a hang, also on a machine that is busy with other tests. */
const HANG_MS = 100_000

let browser: Promise<Browser> | null = null

export interface Opened {
  page: Page
  /** What the browser complained about: errors, and what the content policy stopped. */
  complaints: string[]
}

export async function openPage(
  url: string,
  options: { width?: number; height?: number; dark?: boolean } = {},
): Promise<Opened> {
  browser ??= chromium.launch({
    executablePath: path as string,
    timeout: HANG_MS,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
  const { width = 1280, height = 800, dark = false } = options
  const context = await (
    await browser
  ).newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
  })
  context.setDefaultTimeout(HANG_MS)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    // Other tests add interfaces to this machine; the page tries again.
    const isOfMachine = message.text().includes('ERR_NETWORK_CHANGED')
    if (message.type() === 'error' && !isOfMachine) complaints.push(message.text())
  })
  await page.goto(url)
  return { page, complaints }
}

after(async () => (await browser)?.close())

const require = createRequire(import.meta.url)

/** What axe-core finds wrong with the page, one line each. */
export async function violations(page: Page): Promise<string[]> {
  // By the protocol of the debugger, which the page's own policy does not bind.
  const axe = (require('axe-core') as { source: string }).source
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const { axe: checker } = globalThis as unknown as {
      axe: {
        run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>
      }
    }
    const found = await checker.run()
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
    )
  })
}
