/** The pages about the built-in services, followed as written. */
import t from 'tap'
import { serveShipped } from './servers.js'
import { type PageWalk, walk } from './walk.js'

const API_KEY = 'a-key-of-the-management-api'

/** Starts the gateway and sets the variables for its address and key that the pages use. */
async function serveNamed(walk: PageWalk): Promise<void> {
  await serveShipped(walk)
  await walk.run(`URL=http://127.0.0.1:${walk.port(8080)} API_KEY=${API_KEY}`)
}

/** Sets ID to the directory's id, which the reader copies from the response. */
const takeId = ({ run }: PageWalk) =>
  run(
    `ID=$(curl -s "$URL/api/v1/directory-sync?tenant=acme&product=crm" -H "Authorization: Api-Key $API_KEY" | node -p 'JSON.parse(require("fs").readFileSync(0)).data[0].id')`,
  )

t.test('docs/directory.md: a reader creates a directory and its set-up link', async t => {
  await walk(t, 'docs/directory.md', {
    env: { API_KEYS: API_KEY },
    before: { 'Acme at Okta': serveNamed, '/setup-links': takeId },
  })
})

t.test('docs/external-provider.md: a reader creates a pulled directory and its consent link', async t => {
  await walk(t, 'docs/external-provider.md', {
    env: { API_KEYS: API_KEY, EXTERNAL_CLIENT_ID: 'client', EXTERNAL_CLIENT_SECRET: 'secret' },
    before: { external_domain: serveNamed, '/consent-link': takeId },
  })
})

t.test('docs/forms.md: the cookie identifies a registered user', async t => {
  await walk(t, 'docs/forms.md', { before: { '-c jar': serveShipped } })
})
