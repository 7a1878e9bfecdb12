/** The pages about the built-in services, done as they are written. */
import t from 'tap'
import { serveShipped } from './servers.js'
import { type PageWalk, walk } from './walk.js'

const API_KEY = 'a-key-of-the-management-api'

/** The gateway, and its address and key in the words of the pages. */
async function serveNamed(walk: PageWalk): Promise<void> {
  await serveShipped(walk)
  await walk.run(`URL=http://127.0.0.1:${walk.port(8080)} API_KEY=${API_KEY}`)
}

/** What the answer shows, and the reader takes from it. */
const takeId = ({ run }: PageWalk) =>
  run(
    `ID=$(curl -s "$URL/api/v1/directory-sync?tenant=acme&product=crm" -H "Authorization: Api-Key $API_KEY" | node -p 'JSON.parse(require("fs").readFileSync(0)).data[0].id')`,
  )

t.test('docs/directory.md: a directory and its set-up link', async t => {
  await walk(t, 'docs/directory.md', {
    env: { API_KEYS: API_KEY },
    before: { 'Acme at Okta': serveNamed, '/setup-links': takeId },
  })
})

t.test('docs/external-provider.md: a pulled directory and its consent link', async t => {
  await walk(t, 'docs/external-provider.md', {
    env: { API_KEYS: API_KEY, EXTERNAL_CLIENT_ID: 'client', EXTERNAL_CLIENT_SECRET: 'secret' },
    before: { external_domain: serveNamed, '/consent-link': takeId },
  })
})

t.test('docs/forms.md: whoever registers is recognised by the cookie', async t => {
  await walk(t, 'docs/forms.md', { before: { '-c jar': serveShipped } })
})
