/** `retryJitter`: refused clients are told to come back at different times, never too early. */
import t, { type Test } from 'tap'
import { waitText } from '../../gateway/forward/units.js'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'

const PROJECTS = `version: 1
projects:
${Array.from({ length: 20 }, (_, i) => `  - { id: p${i}, plan: growth, environment: production, hosts: [p${i}.localhost] }`).join('\n')}
`
const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { burst: 1000, sustained: 1, algorithm: fixed-window } } }]
`,
}

async function start(t: Test, jitter: string) {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const settings = `retryJitter: ${jitter}`
  return testGateway(t, { upstream, settings, projects: PROJECTS, policies: POLICIES })
}

async function refusal(url: string, project: number) {
  const headers = { host: `p${project}.localhost` }
  await send(`${url}/`, { headers })
  return send(`${url}/`, { headers })
}

t.test('each project gets its own wait, the same in field, member and detail', async t => {
  const { url } = await start(t, '100%')
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => refusal(url, i)))
  const waits = answers.map(({ headers }) => Number(headers['retry-after']))
  t.ok(
    waits.every(wait => wait >= 60 && wait <= 120),
    `all waits are between one and two times the exact one: ${waits}`,
  )
  t.ok(new Set(waits).size > 10, 'the waits are spread out')
  for (const { status, headers, body } of answers) {
    t.equal(status, 429)
    const wait = Number(headers['retry-after'])
    const problem = JSON.parse(body)
    t.equal(problem.retry_after, wait)
    t.match(problem.detail, `Try again in ${waitText(wait)}.`)
    t.match(headers, { 'x-ratelimit-reset': '60', ratelimit: /"all.sustained";r=0;t=60/ }, 'resets are exact')
  }
})

t.test('explain gives the wait the client gets', async t => {
  const { url, adminUrl } = await start(t, '100%')
  const told = await refusal(url, 7)
  const question = { method: 'GET', target: '/', host: 'p7.localhost' }
  const headers = { 'content-type': 'application/json' }
  const answer = await send(`${adminUrl}/explain`, {
    method: 'POST',
    headers,
    body: JSON.stringify(question),
  })
  const { fields } = JSON.parse(answer.body).answer as { fields: [string, string][] }
  t.equal(fields.find(([name]) => name === 'Retry-After')?.[1], told.headers['retry-after'])
})

t.test('without jitter Retry-After is the exact wait', async t => {
  const { url } = await start(t, '0%')
  const { headers } = await refusal(url, 0)
  t.equal(headers['retry-after'], '60')
})
