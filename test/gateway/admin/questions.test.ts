/** Who may use the admin port, and how wrong requests to it are answered. */
import t from 'tap'
import { sluice } from '../../helpers/command.js'
import { KEY, start } from './operated.js'

t.test('an invalid request is refused with a sentence that names the fault', async t => {
  const gateway = await start(t)
  const detailOf = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(gateway.adminUrl + path, init)
    const { detail } = (await answer.json()) as { detail: string }
    return `${answer.status} ${detail}`
  }
  const explain = (asked: unknown) => {
    const headers = { 'content-type': 'application/json' }
    return detailOf('/explain', { method: 'POST', headers, body: JSON.stringify(asked) })
  }
  for (const query of ['', '?plan=growth', '?project=acme&plan=growth&environment=production']) {
    t.equal(await detailOf(`/policy${query}`), '400 Name a project, or a plan and an environment.')
  }
  t.equal(await detailOf('/policy?projct=acme'), '400 "projct" is unknown in the query.')
  t.match(
    await detailOf('/policy?plan=groth&environment=production'),
    '404 Unknown plan "groth". Did you mean "growth"?',
  )
  t.match(
    await detailOf('/projects/acme/counters?auth=gold'),
    '400 "auth" in the query must be one of authenticated, anonymous',
  )
  t.equal(await explain({ method: 'GET' }), '400 "target" is missing in the body.')
  t.equal(await explain([]), '400 The body must be a JSON object.')
  t.equal(await explain({ method: 'GET', target: '/', hdrs: [] }), '400 "hdrs" is unknown in the body.')
  t.match(
    await explain({ method: 'GET', target: 'x'.repeat(9000) }),
    '400 "target" in the body may have at most',
  )
  t.equal(await explain({ method: 'GE T', target: '/' }), '422 "GE T" is not a method.')
  t.equal(await explain({ method: 'GET', target: '/', ip: 'here' }), '422 "here" is not an IP address.')
  for (const field of [
    ['a b', 'c'],
    ['a', 'b\r\nc: d'],
  ]) {
    t.match(
      await explain({ method: 'GET', target: '/', headers: [field] }),
      '422 A field of "headers" cannot be sent',
    )
  }
  t.match(
    await detailOf('/explain', { method: 'POST', body: new URLSearchParams('a=b') }),
    '415 Send JSON, and say so',
  )
  t.equal(await explain('x'.repeat(1_000_000)), '413 The body is too large.')
})

t.test('without a key only requests with a local Host get anything but health', async t => {
  const { ask } = await start(t)
  const port = 8081
  for (const host of [
    'localhost',
    `localhost:${port}`,
    `127.0.0.1:${port}`,
    `[::1]:${port}`,
    'sluice.localhost',
  ]) {
    t.equal((await ask('/state', 'GET', { host })).status, 200, host)
  }
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    '127.0.0.1.evil.example',
  ]) {
    for (const path of ['/state', '/metrics', '/policy?project=acme', '/none']) {
      t.equal((await ask(path, 'GET', { host })).status, 421, `${host} ${path}`)
    }
    t.equal((await ask('/counters/all?project=acme', 'DELETE', { host })).status, 421)
    t.equal((await ask('/livez', 'GET', { host })).status, 200, 'health is open')
  }
  const { ask: askWithKey } = await start(t, '', KEY)
  const headers = { host: 'sluice.example', authorization: `Bearer ${KEY}` }
  t.equal((await askWithKey('/state', 'GET', headers)).status, 200, 'with the key any host name is accepted')
})

t.test('an invalid method names no counter', async t => {
  const { ask } = await start(t)
  for (const [path, method] of [
    ['/projects/acme/counters?method=G%20ET', 'GET'],
    ['/counters/flood?project=acme&method=G%20ET', 'DELETE'],
  ] as const) {
    t.match(await ask(path, method), { status: 422, body: /\\"G ET\\" is not a method/ })
  }
})

t.test('the health command reports the same as text and as JSON', async t => {
  const { adminUrl } = await start(t)
  const folder = (port: string) =>
    t.testdir({
      'gateway.yaml': `version: 1\nadmin: { port: ${port} }\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\n`,
      'projects.yaml': 'version: 1\nprojects: []\n',
      policies: {},
    })
  const there = folder(new URL(adminUrl).port)
  t.same(await sluice(['health', '--config', there]), { code: 0, out: 'ready\n', err: '' })
  t.match(await sluice(['health', '--config', there, '--json']), {
    code: 0,
    out: '{"ready":true,"fault":null}\n',
  })
  const nowhere = folder('9')
  t.match(await sluice(['health', '--config', nowhere]), {
    code: 1,
    out: '',
    err: /^Nothing answers on http/,
  })
  const { code, out } = await sluice(['health', '--config', nowhere, '--json'])
  t.equal(code, 1)
  t.match(JSON.parse(out), { ready: false, fault: /^Nothing answers on http/ })
})
