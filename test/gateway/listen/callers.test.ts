/** Whom a request is counted against, through a whole gateway: clients gain nothing from what they claim to be. */
import { Agent } from 'node:http'
import t, { type Test } from 'tap'
import { type TestGateway, testGateway } from '../../helpers/gateway.js'
import { type Received, send, startApp } from '../../helpers/http.js'

const POLICY = `version: 1
kind: volumetric
rules:
  - id: flood
    match: [POST /self-service/**]
    key: [client-ip]
    quota: { requests: 5, per: 60s }
    mode: enforce
  - id: prints
    match: [POST /prints]
    key: [ja4]
    quota: { requests: 5, per: 60s }
    missing: shared
    mode: enforce
`

async function start(
  t: Test,
  settings = '',
): Promise<{ gateway: TestGateway; seen: Record<string, unknown>[] }> {
  const seen: Record<string, unknown>[] = []
  const upstream = await startApp(t, (req, res) => {
    seen.push(req.headers)
    req.resume().on('end', () => res.end('done'))
  })
  const gateway = await testGateway(t, { upstream, settings, policies: { 'flood.yaml': POLICY } })
  return { gateway, seen }
}

/** Sends 40 requests, each with other fields, and counts how many were admitted and refused. */
async function flood(
  t: Test,
  { url }: TestGateway,
  fieldsOf: (i: number) => Record<string, string>,
  path = '/self-service/registration',
): Promise<{ admitted: number; refused: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  t.teardown(() => agent.destroy())
  const answers: Received[] = await Promise.all(
    Array.from({ length: 40 }, (_, i) => send(url + path, { method: 'POST', headers: fieldsOf(i), agent })),
  )
  const count = (wanted: number): number => answers.filter(({ status }) => status === wanted).length
  return { admitted: count(200), refused: count(429) }
}

const address = (i: number): string => `203.0.113.${i}`

t.test('a flood of invented addresses spends from one counter, whatever the field', async t => {
  const inventions: ((i: number) => Record<string, string>)[] = [
    i => ({ 'x-forwarded-for': address(i) }),
    i => ({ x_forwarded_for: address(i) }),
    i => ({ forwarded: `for=${address(i)}` }),
    i => ({ 'x-real-ip': address(i), 'true-client-ip': address(i), 'cf-connecting-ip': address(i) }),
    i => ({ 'x-forwarded-for': address(i), connection: 'x-forwarded-for' }),
  ]
  const { gateway } = await start(t)
  const fieldsOf = (i: number) => inventions[i % inventions.length]?.(i) ?? {}
  t.same(await flood(t, gateway, fieldsOf), { admitted: 5, refused: 35 })
})

t.test('behind a trusted hop', async t => {
  const trusting = 'trustedProxies: [127.0.0.1]'

  t.test('each client has its own counter', async t => {
    const { gateway } = await start(t, trusting)
    t.same(await flood(t, gateway, i => ({ 'x-forwarded-for': address(i) })), { admitted: 40, refused: 0 })
  })

  t.test('addresses left of the one the hop added do not change the counter', async t => {
    const { gateway } = await start(t, trusting)
    const fieldsOf = (i: number) => ({ 'x-forwarded-for': `${address(i)}, 10.0.0.${i}, 198.51.100.7` })
    t.same(await flood(t, gateway, fieldsOf), { admitted: 5, refused: 35 })
  })

  t.test('an IPv6 client has one counter for its /64', async t => {
    const { gateway } = await start(t, trusting)
    const fieldsOf = (i: number) => ({ 'x-forwarded-for': `2001:db8:1:2::${i}` })
    t.same(await flood(t, gateway, fieldsOf), { admitted: 5, refused: 35 })
  })
})

t.test('invented fingerprints', async t => {
  t.test('from an untrusted peer all count as missing', async t => {
    const { gateway, seen } = await start(t)
    const fieldsOf = (i: number) => ({ 'x-ja4-fingerprint': `t13d${i}`, x_ja4_fingerprint: `t13d${i}` })
    t.same(await flood(t, gateway, fieldsOf, '/prints'), { admitted: 5, refused: 35 })
    t.notMatch(JSON.stringify(seen), /t13d/, 'and do not reach the upstream')
  })

  t.test('count in the trusted hop’s field, and not in another spelling of it', async t => {
    const { gateway } = await start(t, 'trustedProxies: [127.0.0.1]')
    const told = (i: number) => ({ 'x-ja4-fingerprint': `t13d${i}` })
    t.same(await flood(t, gateway, told, '/prints'), { admitted: 40, refused: 0 })
    const respelt = (i: number) => ({ x_ja4_fingerprint: `t13d${i}` })
    t.same(await flood(t, gateway, respelt, '/prints'), { admitted: 5, refused: 35 })
  })
})

t.test('a client’s X-Sluice fields never reach the upstream, in any spelling', async t => {
  const { gateway, seen } = await start(t)
  await send(gateway.url, {
    headers: {
      'X-Sluice-Project': 'evil',
      'x-SLUICE-plan': 'evil',
      X_Sluice_Project: 'evil',
      'x_sluice-environment': 'evil',
      'x-sluice_request-id': 'evil',
      'X-Sluice-Anything': 'evil',
    },
  })
  t.notMatch(JSON.stringify(seen), /evil/)
  t.match(seen[0], {
    'x-sluice-project': /./,
    'x-sluice-plan': 'developer',
    'x-sluice-request-id': /^[0-9a-f-]{36}$/,
  })
})
