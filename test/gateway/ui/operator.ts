/** An operator with the page of a gateway open in Chromium. */
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { send, startApp } from '../../helpers/http.js'

const { source: axe } = createRequire(import.meta.url)('axe-core') as { source: string }

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"], reads: [GET /reads], search: { match: [GET /search], key: [client-ip] } }
limits: [{ for: [{}], quotas: { all: { burst: 100, sustained: 300 }, reads: { burst: 5, sustained: 5, trial: { sustained: 2 } }, search: { burst: 1, sustained: 1 } } }]
`,
  'in-flight.yaml': `version: 1
kind: in-flight
rules: [{ id: slow, match: [/slow], key: [project], max: 2 }]
`,
  'flood.yaml': `version: 1
kind: volumetric
rules:
  - { id: by-ip, match: [/ip], key: [client-ip], quota: { requests: 1, per: 60s } }
  - { id: watched, match: [/watched], key: [project], quota: { requests: 1, per: 60s }, mode: report-only, since: 2026-01-01 }
`,
}

export interface Operated extends TestGateway {
  /** Statuses of requests from project `acme`. */
  ask(path: string, times?: number, method?: string): Promise<number[]>
}

/** A gateway with a rule of each kind. Requests for `/slow` hold their slot until the test ends. */
export async function operated(
  t: Test,
  adminKey = '',
  settings = '',
  routes?: readonly string[],
): Promise<Operated> {
  const upstream = await startApp(t, (request, response) => {
    if (request.url !== '/slow') response.end('done')
  })
  const gateway = await testGateway(t, {
    upstream,
    adminKey,
    settings,
    policies: POLICIES,
    ...(routes && { routes }),
  })
  return {
    ...gateway,
    async ask(path, times = 1, method = 'GET') {
      const statuses: number[] = []
      for (let n = 0; n < times; n++) {
        statuses.push(
          (await send(gateway.url + path, { method, headers: { host: 'acme.localhost' } })).status,
        )
      }
      return statuses
    },
  }
}

/** Opens the page; fails the test when its content policy blocks something or one of its scripts fails. */
export async function visit(
  t: Test,
  browser: Browser,
  adminUrl: string,
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext(options)
  t.teardown(() => context.close())
  context.setDefaultTimeout(8000)
  const page = await context.newPage()
  page.on('pageerror', error => t.fail(`the page failed: ${error.message}`))
  page.on('dialog', () => t.fail('a script from a name ran'))
  page.on('console', message => {
    if (/Content Security|Trusted/.test(message.text())) t.fail(message.text())
  })
  await page.goto(`${adminUrl}/ui/`)
  return page
}

/** The faults that axe-core finds on the page in its current state, a line each. */
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate<string[]>(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(node => id + ': ' + node.html)))`,
  )
}

/** The table row that contains the text `name`. */
export function row(page: Page, table: string, name: string) {
  return page.locator(`#${table}-table tbody tr`).filter({ has: page.getByText(name, { exact: true }) })
}
