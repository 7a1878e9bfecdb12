/** Chromium as one of the clients: a page of the server's own that fetches. */
import { chromium } from 'playwright-core'
import { chromiumPath } from '../../test/helpers/browser.js'
import { type Case, type Cases, type Results, resultsOf } from './cases.js'
import { type Client, countConnections } from './client.js'
import { Missing } from './install.js'

/** What a page may not ask for, or does not see. */
const NOT_FOR_PAGES = /expect|interim|trailers/

export function chromiumClient(): Client {
  const executablePath = chromiumPath()
  if (executablePath === undefined) throw new Missing('Chromium is not here: apt-get install chromium')
  const play = async (base: string, cases: Cases): Promise<Results> => {
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
    try {
      const page = await browser.newPage({ ignoreHTTPSErrors: true })
      await page.goto(`${base}/length`)
      const lines = []
      for (const [name, asked] of Object.entries(cases))
        lines.push([name, isForPages(asked) ? await page.evaluate(ask, asked) : 'skipped'].join('\t'))
      return resultsOf(lines.join('\n'))
    } finally {
      await browser.close()
    }
  }
  return { play, connections: (base, cases) => countConnections(base, url => play(url, cases)) }
}

/** A redirect that is not followed is hidden from the page, and a cookie is the browser's. */
function isForPages({ path, flags = '', headers = [] }: Case): boolean {
  if (NOT_FOR_PAGES.test(flags) || headers.some(line => line.startsWith('Cookie:'))) return false
  return !path.startsWith('/redirect') || flags.includes('follow')
}

/** Runs in the page. */
async function ask({ method, path, upload, headers = [] }: Case): Promise<string> {
  const body = upload === undefined ? null : 'x'.repeat(upload)
  const fields = headers.map(line => line.split(': ', 2) as [string, string])
  try {
    const answer = await fetch(path, { method, headers: fields, body })
    const bytes = await answer.arrayBuffer()
    // Pages without TLS have no digests.
    let sum = 0
    for (const byte of new Uint8Array(bytes)) sum = (sum * 31 + byte) >>> 0
    const lines = [...answer.headers].map(([name, value]) => `${name}: ${value}`)
    return [answer.status, bytes.byteLength, sum, lines.join('\x01')].join('\t')
  } catch (error) {
    return `error: ${error}`
  }
}
