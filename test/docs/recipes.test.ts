/** docs/recipes.md: each recipe, as the page has it, does what it is for. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { newKey, startIssuer, token } from '../gateway/identify/jwt/issuer.js'
import { sluice } from '../helpers/command.js'
import { serveProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { inProject } from '../helpers/root.js'
import { type Scope, temporaryFolder } from '../helpers/scope.js'
import { waitUntil } from '../helpers/wait.js'
import { closeOf, openSocket, webSocketUpstream } from '../helpers/web-sockets.js'
import { filesOf } from './blocks.js'

const id = 'https://id.example.com/'

/** Writes the files of one recipe into a folder, and returns it. Upstream and issuer are those of the test. */
function written(t: Scope, recipe: string, upstream: string, keySet = ''): string {
  const folder = temporaryFolder(t, 'recipe')
  for (const { file, text } of filesOf('docs/recipes.md')) {
    if (!file.startsWith(`${recipe}/`)) continue
    const local = text
      .replace('http://127.0.0.1:3000', upstream)
      .replace(/port: 808\d/g, 'port: 0')
      .replace(/^ +jwks: "https:.*"$/m, `    jwks: "${keySet}"\n    allowPrivate: true`)
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), local)
  }
  return join(folder, recipe)
}

/** Opens when `count` requests have been refused, so that the others are under way until then. */
function untilRefused(count: number) {
  let open = () => {}
  let refused = 0
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return {
    opened,
    saw<R extends { readonly status: number }>(response: R): R {
      if (response.status === 429) refused += 1
      if (refused >= count) open()
      return response
    },
  }
}

t.test('an MCP server is limited by tool and user', async t => {
  const key = await newKey('one', 'RS256')
  const issuer = await startIssuer(t, [key])
  const upstream = await startApp(t, (req, res) => req.resume().on('end', () => res.end('{}')))
  const { url } = await serveProcess(t, ['--config', written(t, 'mcp', upstream, issuer.url)])
  const audience = 'https://mcp.example.com/mcp'
  const bearer = async (sub: string) =>
    `Bearer ${await token(key, { issuer: id, audience, claims: { sub } })}`
  const [alice, bob] = [await bearer('alice'), await bearer('bob')]
  const call = (user: string, name: string, id = 1) =>
    send(`${url}/mcp`, {
      method: 'POST',
      headers: { authorization: user, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } }),
    })
  for (let i = 0; i < 5; i += 1) t.equal((await call(alice, 'search')).status, 200)
  const refused = await call(alice, 'search', 6)
  t.match(refused, { status: 429, headers: { 'content-type': 'application/json', 'retry-after': '1' } })
  t.match(refused.json(), {
    jsonrpc: '2.0',
    id: 6,
    error: { code: -32029, message: /^Bucket each-tool admits 5 requests per second/ },
  })
  t.equal((await call(alice, 'fetch')).status, 200, 'another tool has its own counter')
  t.equal((await call(bob, 'search')).status, 200, 'and so has another user')
  t.equal((await call('', 'search')).status, 401)
})

t.test('guessing at a login', async t => {
  const upstream = await startApp(t, (req, res) => {
    let body = ''
    req.on('data', part => {
      body += part
    })
    req.on('end', () => {
      res.statusCode = body.includes('password=right') ? 200 : 401
      res.end()
    })
  })
  const { url } = await serveProcess(t, ['--config', written(t, 'login', upstream)])
  const login = async (client: string, email: string, password: string) => {
    const headers = { 'x-forwarded-for': client, 'content-type': 'application/x-www-form-urlencoded' }
    const body = `email=${encodeURIComponent(email)}&password=${password}`
    return (await send(`${url}/login`, { method: 'POST', headers, body })).status
  }

  for (let i = 0; i < 10; i += 1) t.equal(await login('203.0.113.1', `user${i}@example.com`, 'wrong'), 401)
  t.equal(
    await login('203.0.113.1', 'someone@example.com', 'right'),
    429,
    'an address that guessed is blocked',
  )
  t.equal(await login('203.0.113.2', 'user1@example.com', 'right'), 200, 'the account is not')

  for (let i = 0; i < 20; i += 1) t.equal(await login(`198.51.100.${i}`, 'alice@example.com', 'wrong'), 401)
  t.equal(
    await login('198.51.100.99', 'Alice@example.com', 'wrong'),
    429,
    'many addresses guess at one account',
  )
  t.equal(await login('198.51.100.99', 'bob@example.com', 'right'), 200)

  for (let i = 0; i < 40; i += 1) t.equal(await login('192.0.2.1', 'carol@example.com', 'right'), 200)
})

t.test('free and paid tiers, by API key or token', async t => {
  const key = await newKey('one', 'RS256')
  const issuer = await startIssuer(t, [key])
  const seen: (string | undefined)[] = []
  const upstream = await startApp(t, (req, res) => {
    seen.push(req.headers['x-api-key'] as string | undefined)
    res.end()
  })
  const folder = written(t, 'tiers', upstream, issuer.url)
  const made = await sluice(['keys', 'add', '--config', folder, '--project', 'acme', '--name', 'ci'])
  const apiKey = made.out.trim()
  const { url } = await serveProcess(t, ['--config', folder])
  const audience = 'https://api.example.com'
  const user = async (sub: string, plan?: string) => {
    const claims = { sub, ...(plan && { plan }) }
    return { authorization: `Bearer ${await token(key, { issuer: id, audience, claims })}` }
  }
  const admitted = async (headers: Record<string, string>, requests: number) => {
    const all = await Promise.all(Array.from({ length: requests }, () => send(`${url}/things`, { headers })))
    return all.filter(({ status }) => status === 200).length
  }
  t.equal(await admitted(await user('ann', 'free'), 12), 2)
  t.equal(await admitted(await user('ben', 'pro'), 25), 20)
  t.equal(await admitted(await user('cyd', 'gold'), 12), 2, 'a plan that is none of ours is the free one')
  t.equal(await admitted(await user('dan'), 12), 2)
  t.equal(await admitted({ 'x-api-key': apiKey }, 25), 20)
  t.same(new Set(seen), new Set([undefined]), 'the upstream does not see the key')
  t.equal((await send(`${url}/things`)).status, 401)

  const quota = await send(`${url}/.well-known/quota`, { headers: { 'x-api-key': apiKey } })
  t.match(quota.json(), { project: 'acme', plan: 'pro' })
  t.match((quota.json() as { buckets: { windows: object[] }[] }).buckets[0]?.windows[1], {
    window: 'month',
    quota: 100_000,
    used: 20,
  })
})

t.test('exports are limited by their rows, one at a time', async t => {
  const gate = untilRefused(4)
  const upstream = await startApp(t, async (_req, res) => {
    await gate.opened
    res.setHeader('x-rows', '20000').end('rows')
  })
  const { url } = await serveProcess(t, ['--config', written(t, 'exports', upstream)])
  const get = (host: string) => send(`${url}/exports/orders`, { headers: { host } })
  const together = await Promise.all(
    Array.from({ length: 5 }, async () => gate.saw(await get('acme.example.com'))),
  )
  const [first, ...others] = together.filter(({ status }) => status === 200)
  t.same([first?.headers['x-rows'], others], [undefined, []])
  const later: number[] = []
  for (let i = 0; i < 4; i += 1) later.push((await get('acme.example.com')).status)
  t.same(later, [200, 200, 429, 429], '50,000 rows are three exports of 20,000')
  t.equal((await get('globex.example.com')).status, 200)
})

t.test('GraphQL operations cost what the policy says', async t => {
  const upstream = await startApp(t, (req, res) => req.resume().on('end', () => res.end('{}')))
  const folder = written(t, 'graphql', upstream)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(inProject('.'), join(folder, 'node_modules', 'sluicegate'))
  const { url } = await serveProcess(t, ['--config', folder])
  const run = (operation: string) => send(`${url}/graphql/${operation}`, { method: 'POST', body: '{}' })
  const statuses = async (operation: string, times: number) => {
    const all: number[] = []
    for (let i = 0; i < times; i += 1) all.push((await run(operation)).status)
    return all
  }
  t.same(await statuses('Search', 8), Array(8).fill(200), '80 of 100 points')
  t.same(await statuses('constructor', 1), [200], 'an operation without a cost of its own costs 20')
  t.same(await statuses('Viewer', 1), [429])
  t.equal((await run('')).status, 404)
})

t.test('a budget of tokens by user and model, with streaming', async t => {
  const key = await newKey('one', 'RS256')
  const issuer = await startIssuer(t, [key])
  const encodings = new Set<unknown>()
  const gate = untilRefused(4)
  const upstream = await startApp(t, (req, res) => {
    encodings.add(req.headers['accept-encoding'])
    const chunk = (usage: object | null) =>
      `data: ${JSON.stringify({ choices: [{ delta: 'hi' }], usage })}\n\n`
    req.resume().on('end', () => {
      if (req.url?.includes('/small/')) {
        res.setHeader('content-type', 'application/json').end(JSON.stringify({ usage: { total_tokens: 50 } }))
        return
      }
      res.setHeader('content-type', 'text/event-stream').write(chunk(null).repeat(1000))
      gate.opened.then(() => res.end(`${chunk({ total_tokens: 1000 })}data: [DONE]\n\n`))
    })
  })
  const gateway = await serveProcess(t, ['--config', written(t, 'tokens', upstream, issuer.url)])
  const bearer = async (sub: string) => {
    const audience = 'https://models.example.com'
    return `Bearer ${await token(key, { issuer: id, audience, claims: { sub } })}`
  }
  const [ann, ben] = [await bearer('ann'), await bearer('ben')]
  const chat = async (authorization: string, model: string) => {
    const headers = { authorization, 'content-type': 'application/json', 'accept-encoding': 'gzip' }
    const body = JSON.stringify({ max_completion_tokens: 4000, stream: true })
    const url = `${gateway.url}/deployments/${model}/chat/completions`
    return gate.saw(await send(url, { method: 'POST', headers, body }))
  }
  const together = await Promise.all(Array.from({ length: 6 }, () => chat(ann, 'large')))
  t.equal(together.filter(({ status }) => status === 200).length, 2, 'two reserve 8000 of 10000')
  // What was reserved comes back just after the response has ended.
  for (let spent = 2000; spent <= 6000; spent += 1000) {
    await waitUntil(`room after ${spent}`, async () => (await chat(ann, 'large')).status === 200)
  }
  await waitUntil('7000 of 10000 to be spent, which leaves no room for 4000', async () => {
    const { status, headers } = await chat(ann, 'large')
    t.equal(status, 429)
    return String(headers.ratelimit).startsWith('"large.day";r=3000;')
  })
  t.equal((await chat(ann, 'small')).status, 200)
  t.equal((await chat(ben, 'large')).status, 200)
  t.same(encodings, new Set([undefined]))
})

t.test('a chat over WebSocket', async t => {
  const upstream = await webSocketUpstream(t)
  const { url } = await serveProcess(t, ['--config', written(t, 'chat', upstream.url)])
  const open = () => openSocket(t, url)
  const [socket, ...others] = await Promise.all([open(), open(), open(), open()])
  await t.rejects(open(), /429/, 'a fifth WebSocket')
  const since = performance.now()
  for (let i = 1; i <= 30; i += 1) socket.send(`m${i}`)
  await waitUntil('all thirty', () => upstream.messages.length === 30)
  t.ok(performance.now() - since > 1_500, 'ten a second')
  const close = closeOf(socket)
  socket.send('m31')
  t.match(await close, { status: 1008, reason: 'too many messages' })
  t.equal(upstream.messages.at(-1), 'm30')
  t.ok(others.every(({ readyState, OPEN }) => readyState === OPEN))
})
