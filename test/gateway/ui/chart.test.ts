/** What the page says of the last hour. */
import t from 'tap'
import { joinHistory } from '../../../gateway/run/live/join.js'
import { launchBrowser } from '../../helpers/browser.js'
import { operated } from './operator.js'

t.test('an error of an upstream, or of the gateway, is not called a refusal', async t => {
  const browser = await launchBrowser(t)
  if (!browser) return
  const { adminUrl } = await operated(t)
  /** The caption for one step with these requests: allowed, refused, our errors, errors of upstreams. */
  const captionOf = async (counts: number[]) => {
    const page = await browser.newPage()
    await page.route('**/live/history', route =>
      route.fulfill({ json: joinHistory([{ firstStep: 0, points: [counts] }], {}) }),
    )
    await page.goto(`${adminUrl}/ui/`)
    const caption = await page.locator('#history-chart figcaption').innerText()
    await page.close()
    return caption
  }
  t.equal(await captionOf([1, 0, 0, 50, 0]), 'Nothing was refused in the last 10 s.')
  t.equal(await captionOf([1, 0, 50, 0, 0]), 'Nothing was refused in the last 10 s.')
  t.equal(await captionOf([1, 20, 50, 50, 0]), 'Refused during all of the last 10 s, at most 2.0 a second.')
})
