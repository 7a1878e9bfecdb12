/** CORS preflights are limited like other requests. */
import { once } from 'node:events'
import { connect } from 'node:http2'
import t from 'tap'
import { HTTP2_WIRES, type Http2Wire } from '../../config/words/words.js'
import { canMakeCertificates, makeCertificate } from '../helpers/certificates.js'
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

t.test('over HTTP/2 and under report-only limits too, as explain says', async t => {
  if (!canMakeCertificates(t)) return
  const upstream = await startApp(t, (_req, res) => res.end())
  const tls = makeCertificate(t.testdir(), 'acme')
  const answers = async (http2: Http2Wire, mode: string) => {
    const { host, ...fields } = PREFLIGHT
    const policies = { 'limits.yaml': `${POLICIES['limits.yaml']}mode: ${mode}\n` }
    const { url, adminUrl } = await testGateway(t, { upstream, tls, http2, policies })
    const session = connect(url, { rejectUnauthorized: false })
    t.teardown(() => session.destroy())
    const ask = async () => {
      const stream = session.request({ ':method': 'OPTIONS', ':path': '/x', ':authority': host, ...fields })
      stream.resume().end()
      const [head] = await once(stream, 'response')
      return head[':status']
    }
    const statuses = await Promise.all(Array.from({ length: 12 }, ask))
    const asked = { method: 'OPTIONS', target: '/x', host, headers: Object.entries(fields) }
    const explained = await send(`${adminUrl}/explain`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(asked),
    })
    return { passed: statuses.filter(status => status === 200).length, answer: explained.json().answer }
  }
  for (const wire of HTTP2_WIRES) {
    t.match(await answers(wire, 'enforce'), { passed: 5, answer: { status: 429, refused_by: ['all'] } })
    t.match(await answers(wire, 'report-only'), {
      passed: 12,
      answer: { status: null, would_be_refused_by: ['all'] },
    })
  }
})
