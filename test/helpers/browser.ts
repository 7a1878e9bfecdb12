/** Chromium, if it is installed. */
import { type Browser, chromium } from 'playwright-core'
import type { Test } from 'tap'
import { findCommand } from './child-server.js'
import { reportMissing } from './missing.js'

/** Where Chromium is; undefined when it is not on PATH. */
export const chromiumPath = (): string | undefined =>
  findCommand(['chromium', 'chromium-browser', 'google-chrome'])

/** A browser that is closed with the test; undefined after reporting how to install one. */
export async function launchBrowser(t: Test): Promise<Browser | undefined> {
  const executablePath = chromiumPath()
  if (executablePath === undefined) {
    reportMissing(t, 'Chromium', 'install it, or run `npm run services` as root on Debian')
    return undefined
  }
  // Containers run tests as root, where Chromium's sandbox does not work.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  t.teardown(() => browser.close())
  return browser
}
