/** Limits by the JSON-RPC method or the tool that is called, and what their refusals are for such clients. */
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { onEachStore } from '../helpers/stores.js'
import { waitUntil } from '../helpers/wait.js'

const rule = (more: string) => `version: 1
kind: volumetric
rules:
  - { id: calls, match: [POST /mcp], key: [client-ip, json-rpc], quota: { requests: 2, per: 60s } }
${more}`

/** A gateway that believes who the client is, so that each test has one of its own. */
async function scene(t: Test, { policy = rule(''), settings = '', up = true } = {}) {
  const seen: string[] = []
  const held: (() => void)[] = []
  const finish = () => {
    for (const end of held) end()
  }
  const upstream = up
    ? await startApp(t, (req, res) => {
        let body = ''
        req.on('data', chunk => (body += chunk))
        req.on('end', () => {
          seen.push(body)
          if (body.includes('slow')) held.push(() => res.end('{}'))
          else res.end('{}')
        })
      })
    : 'http://127.0.0.1:1'
  const gateway = await testGateway(t, {
    upstream,
    settings: `${settings}\ntrustedProxies: [127.0.0.1]`,
    policies: { 'rules.yaml': policy },
  })
  // A shared Redis may know the addresses of another run.
  const part = () => Math.floor(Math.random() * 65_536).toString(16)
  const client = `2001:db8:${part()}:${part()}::1`
  const headers = { host: 'acme.localhost', 'content-type': 'application/json', 'x-forwarded-for': client }
  const post = async (body: string, more = {}) =>
    send(`${gateway.url}/mcp`, { method: 'POST', headers: { ...headers, ...more }, body })
  const status = async (body: string) => (await post(body)).status
  return { gateway, seen, post, status, finish }
}

const tool = (name: string, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } })

onEachStore(t, 'each tool of a client has its own counter', async (t, store) => {
  const { status, seen, post } = await scene(t, { settings: (await store.settings(t)) as string })
  t.same(
    [await status(tool('search')), await status(tool('search')), await status(tool('search'))],
    [200, 200, 429],
  )
  t.equal(await status(tool('fetch')), 200)
  t.equal(await status('{"id":1,"method":"ping"}'), 200)
  t.equal(
    await status('{"method":"tools\\u002fcall","params":{"name":"Search"},"id":2}'),
    429,
    'in any spelling',
  )
  t.same(
    seen,
    [tool('search'), tool('search'), tool('fetch'), '{"id":1,"method":"ping"}'],
    'bodies are unchanged',
  )

  const refused = await post(tool('search', 'call-7'))
  t.match(refused.headers, {
    'content-type': 'application/json',
    'retry-after': /\d+/,
    'cache-control': 'no-store',
  })
  t.match(refused.json(), {
    jsonrpc: '2.0',
    id: 'call-7',
    error: {
      code: -32029,
      message: /Try again in/,
      data: { status: 429, code: 'abnormal-usage', retry_after: Number },
    },
  })
})

onEachStore(t, 'a batch costs its length', async (t, store) => {
  const { status, post } = await scene(t, { settings: (await store.settings(t)) as string })
  const batch = (...calls: unknown[]) => JSON.stringify(calls)
  const call = (method: string, id?: number) => ({ jsonrpc: '2.0', method, id })
  t.equal(await status(batch(call('a', 1), call('a', 2))), 200)
  t.equal(await status(JSON.stringify(call('a', 3))), 429, 'its method is used up')
  t.equal(await status(batch(call('a', 1), call('b', 2))), 200, 'batches of several methods count together')

  const refused = await post(batch(call('c', 1), call('d'), call('e', 3)))
  t.equal(refused.status, 429)
  t.match(refused.json(), [
    { jsonrpc: '2.0', id: 1, error: { code: -32029, data: { status: 429 } } },
    { jsonrpc: '2.0', id: 3, error: { code: -32029, message: String } },
  ])
  t.equal(refused.json<unknown[]>().length, 2, 'nobody waits for the answer to a notification')
  t.equal(await status(JSON.stringify(call('c', 1))), 200, 'and the refused batch did not count')

  const silent = await post(batch(call('c'), call('d')))
  t.equal(silent.status, 429)
  t.equal(silent.body.length, 0)
  t.equal(silent.headers['content-type'], undefined)
  t.ok(silent.headers['retry-after'])
})

t.test('bodies that cannot be read share one counter, and get the problem document', async t => {
  const { status, post, seen } = await scene(t)
  t.same([await status('no JSON'), await status('{"method":"a","method":"b"}')], [200, 200])
  for (const body of ['', '{}', 'x'.repeat(1_000_000), `[${'{"method":"a"},'.repeat(10_000)}{}]`]) {
    const refused = await post(body)
    t.match(refused.headers, { 'content-type': 'application/problem+json' })
    t.match(refused.json(), { status: 429, 'violated-policies': ['calls'] })
  }
  t.equal(await status(tool('search')), 200, 'calls that can be read are counted apart')
  t.equal(seen.length, 3)
})

t.test('a batch longer than what is read is refused as the longest', async t => {
  const { status } = await scene(t)
  t.equal(await status(`[${'{"method":"a"},'.repeat(10_000)}{"method":"a"}]`), 429)
})

t.test('other refusals answer the call, too', async t => {
  t.test('of a rule that does not read the body', async t => {
    const policy = rule(
      '  - { id: all, match: [POST /mcp], key: [client-ip], quota: { requests: 1, per: 60s } }',
    )
    const { status, post } = await scene(t, { policy })
    t.equal(await status(tool('search')), 200)
    const refused = await post(tool('fetch', 9))
    t.match(refused.json(), { id: 9, error: { data: { 'violated-policies': ['all'] } } })
  })

  t.test('because nothing can be counted', async t => {
    const { post } = await scene(t, {
      settings: 'redis: redis://127.0.0.1:1\nstore: { onError: closed }',
    })
    const refused = await post(tool('search', 9))
    t.match(refused, { status: 503, headers: { 'content-type': 'application/json' } })
    t.match(refused.json(), { id: 9, error: { code: -32029, data: { code: 'limiter-unavailable' } } })
  })

  t.test('because the upstream is away', async t => {
    const { post } = await scene(t, { up: false })
    const refused = await post(tool('search', 9))
    t.match(refused, { status: 502, headers: { 'content-type': 'application/json' } })
    t.match(refused.json(), { id: 9, error: { data: { code: 'upstream-unreachable' } } })
  })
})

t.test('a report-only rule counts calls, and changes no refusal', async t => {
  const policy = `version: 1
kind: volumetric
rules:
  - { id: calls, match: [POST /mcp], key: [json-rpc], quota: { requests: 1, per: 60s }, mode: report-only }
  - { id: all, match: [POST /mcp], key: [client-ip], quota: { requests: 2, per: 60s } }
`
  const { post, status, gateway } = await scene(t, { policy })
  t.same([await status(tool('search')), await status(tool('search'))], [200, 200])
  t.match(
    gateway.lines.find(({ decision }) => decision === 'would_deny'),
    {
      rule: 'calls',
      parts: { 'json-rpc': /^[\w-]+$/ },
    },
  )
  t.match(await post(tool('search')), {
    status: 429,
    headers: { 'content-type': 'application/problem+json' },
  })
})

t.test('buckets and in-flight rules count by it, too', async t => {
  t.test('a bucket', async t => {
    const policy = `version: 1
kind: project-limits
buckets: { tools: { match: [POST /mcp], key: [project, json-rpc], cost: 2 }, all: ["*"] }
limits: [{ for: [{}], quotas: { tools: { sustained: 5 }, all: { sustained: 100 } } }]
`
    const { post, status } = await scene(t, { policy })
    t.equal(await status(`[${tool('a')},${tool('a')}]`), 200)
    const refused = await post(tool('a'))
    t.match(refused.headers, { ratelimit: /"tools.sustained";r=1/, 'x-ratelimit-remaining': '1' })
    t.match(refused.json<{ error: { data: object } }>().error.data, {
      code: 'quota-exceeded',
      detail: /this one counts as 2/,
    })
    t.equal(await status(tool('b')), 200)

    const large = await post(`[${tool('c')},${tool('c')},${tool('c')}]`)
    t.match(large.json(), [
      { error: { message: /^Bucket tools admits 5 .* counts as 6\. Send fewer calls at a time\.$/ } },
    ])
    t.equal(large.headers['retry-after'], undefined, 'no wait helps it')
  })

  t.test('an in-flight rule, of which a batch takes one slot', async t => {
    const policy = `version: 1
kind: in-flight
rules: [{ id: two-at-a-time, match: [POST /mcp], key: [client-ip, json-rpc], max: 2 }]
`
    const { status, seen, post, finish } = await scene(t, { policy })
    const held = [status(`[${tool('slow')},${tool('slow')},${tool('slow')}]`), status(tool('slow'))]
    await waitUntil('both to be in flight', () => seen.length === 2)
    t.match((await post(tool('slow', 5))).json(), { id: 5, error: { data: { status: 429 } } })
    t.equal(await status(tool('fast')), 200)
    finish()
    t.same(await Promise.all(held), [200, 200])
  })
})

t.test('operators see and reset the counter of a tool', async t => {
  const policy = rule('').replace('client-ip', 'project')
  const { gateway, status } = await scene(t, { policy })
  t.same(
    [await status(tool('search')), await status(tool('search')), await status(tool('search'))],
    [200, 200, 429],
  )
  const explained = await send(`${gateway.adminUrl}/explain`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ method: 'POST', target: '/mcp', host: 'acme.localhost', body: tool('search', 1) }),
  })
  t.match(explained.json(), {
    rules: [{ rule: 'calls', key: [{ part: 'project' }, { part: 'json-rpc', value: 'tools/call:search' }] }],
    answer: { status: 429, fields: [['Content-Type', 'application/json']] },
  })
  const call = encodeURIComponent('tools/call:search')
  const counters = await send(`${gateway.adminUrl}/projects/acme/counters?method=POST&path=/mcp&call=${call}`)
  t.match(counters.json().counters, [{ rule: 'calls', counters: [{ q: 2, left: 0 }] }])
  const reset = `${gateway.adminUrl}/counters/calls?project=acme&call=${call}&why=test&by=me`
  t.equal((await send(reset, { method: 'DELETE' })).status, 200)
  t.equal(await status(tool('search')), 200)
})
