/** CORS preflights are limited like other requests. */
import t from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { onEachStore } from '../helpers/stores.js'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { sustained: 5 } } }]
`,
}
const PREFLIGHT = {
  host: 'acme.localhost',
  origin: 'https://app.example',
  'access-control-request-method': 'POST',
}

onEachStore(t, 'a client that adds the fields of a preflight has no quota of its own', async (t, store) => {
  let arrived = 0
  const upstream = await startApp(t, (_req, res) => {
    arrived += 1
    res.end()
  })
  const settings = (await store.settings(t)) ?? ''
  const { url } = await testGateway(t, { upstream, settings, policies: POLICIES })
  const ask = (headers: Record<string, string>) => send(`${url}/x`, { method: 'OPTIONS', headers })
  const answers = await Promise.all(Array.from({ length: 60 }, () => ask(PREFLIGHT)))
  t.equal(answers.filter(({ status }) => status === 200).length, 5)
  t.equal(arrived, 5, 'what is refused reaches no upstream')
  t.equal((await ask({ host: 'acme.localhost' })).status, 429, 'other requests share the quota')
  const refused = answers.find(({ status }) => status === 429)
  t.equal(refused?.headers['access-control-allow-origin'], 'https://app.example', 'a page may read why')
})
