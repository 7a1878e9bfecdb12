/** docs/recipes.md: each recipe, as the page has it, does what it is for. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { newKey, startIssuer, token } from '../gateway/identify/jwt/issuer.js'
import { serveProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { temporaryFolder } from '../helpers/scope.js'
import { filesOf } from './blocks.js'

t.test('an MCP server is limited by tool and user', async t => {
  const key = await newKey('one', 'RS256')
  const issuer = await startIssuer(t, [key])
  const upstream = await startApp(t, (req, res) => req.resume().on('end', () => res.end('{}')))
  const folder = temporaryFolder(t, 'recipe')
  for (const { file, text } of filesOf('docs/recipes.md')) {
    const local = text
      .replace('http://127.0.0.1:3000', upstream)
      .replace(/port: 808\d/g, 'port: 0')
      .replace(/^ +jwks: "https:.*"$/m, `    jwks: "${issuer.url}"\n    allowPrivate: true`)
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), local)
  }
  const { url } = await serveProcess(t, ['--config', join(folder, 'mcp')])
  const audience = 'https://mcp.example.com/mcp'
  const bearer = async (sub: string) =>
    `Bearer ${await token(key, { issuer: 'https://id.example.com/', audience, claims: { sub } })}`
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
