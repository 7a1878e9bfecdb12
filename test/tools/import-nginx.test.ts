/** A real nginx, and a gateway with what `sluice import nginx` makes of the same file, admit the same requests. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { gatewayProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { nginxServing } from '../helpers/nginx.js'

/**
 * The examples of nginx.org (ngx_http_limit_req_module, ngx_http_limit_conn_module), with slower rates, so that the
 * result does not depend on how long a request takes.
 */
const served = (app: string) => `
  limit_req_status 429;
  limit_conn_status 429;
  limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
  limit_req_zone $binary_remote_addr zone=perip:1m rate=1r/m;
  limit_req_zone $server_name zone=perserver:1m rate=1r/m;
  limit_req_zone $binary_remote_addr zone=login:1m rate=20r/m;
  limit_req_zone $binary_remote_addr zone=later:1m rate=30r/m;
  limit_req_zone $http_x_api_key zone=perkey:1m rate=1r/m;
  limit_conn_zone $binary_remote_addr zone=addr:1m;
  server {
    listen PORT;
    server_name search.example.com;
    location /search/ { limit_req zone=one burst=5 nodelay; proxy_pass ${app}; }
    location = /login { limit_req zone=login; proxy_pass ${app}; }
    location /later/ { limit_req zone=later burst=1; proxy_pass ${app}; }
    location /keys/ { limit_req zone=perkey burst=1 nodelay; proxy_pass ${app}; }
    location /tried/ { limit_req zone=one; limit_req_dry_run on; proxy_pass ${app}; }
    location /download/ { limit_conn addr 1; proxy_pass ${app}; }
    location / { proxy_pass ${app}; }
  }
  server {
    listen PORT;
    server_name shop.example.com;
    limit_req zone=perip burst=5 nodelay;
    limit_req zone=perserver burst=3 nodelay;
    location /cart/ { proxy_pass ${app}; }
    location / { proxy_pass ${app}; }
  }
`

t.test('nginx and a gateway with its imported configuration admit the same requests', async t => {
  const held: (() => void)[] = []
  const app = await startApp(t, (req, res) => {
    if (req.url === '/download/held') held.push(() => res.end())
    else res.end()
  })
  let text = ''
  const nginx = await nginxServing(t, port => {
    text = served(app).replaceAll('PORT', `127.0.0.1:${port}`)
    return text
  })
  if (nginx === undefined) return

  const folder = t.testdir({ 'nginx.conf': `http {${text}}` })
  const made = join(folder, 'made')
  const imported = await sluice(['import', 'nginx', join(folder, 'nginx.conf'), '--output', made])
  t.notMatch(imported.err, /Left out: .*(limit_|zone)/)
  const file = join(made, 'gateway.yaml')
  const ports =
    'listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }\nadmin: { host: 127.0.0.1, port: 0 }\n'
  writeFileSync(file, readFileSync(file, 'utf8') + ports)
  const gateway = await gatewayProcess(t, made)

  /** The status that each of the two gives the request; 429 as 'refused'. */
  const ask = (path: string, more: Record<string, string> = {}, host = 'search.example.com') =>
    Promise.all(
      [nginx, gateway.url].map(async url => {
        const { status } = await send(url + path, { headers: { host, ...more } })
        return status === 429 ? 'refused' : status
      }),
    )
  const both = async (n: number, ...request: Parameters<typeof ask>) => {
    const passed = [0, 0]
    for (let i = 0; i < n; i++) {
      const answers = await ask(...request)
      t.equal(answers[1], answers[0], `request ${i + 1} of ${request.join(' ')}`)
      for (const [j, answer] of answers.entries()) if (answer === 200) passed[j] = (passed[j] ?? 0) + 1
    }
    return passed
  }

  t.same(await both(8, '/search/a'), [6, 6], 'both admit the burst and no more')
  t.same(await both(3, '/elsewhere'), [3, 3], 'both admit all without a limit')
  t.same(await both(3, '/tried/a'), [3, 3], 'both admit all in a dry run')
  t.same(await both(3, '/keys/a', { 'x-api-key': 'a' }), [2, 2], 'both limit by a header')
  t.same(
    await both(3, '/keys/a', { 'x-api-key': 'b' }),
    [2, 2],
    'both count another value of the header separately',
  )
  t.same(await both(3, '/keys/a'), [3, 3], 'both admit all without the header')

  const shop = 'shop.example.com'
  t.same(await both(3, '/cart/a', {}, shop), [3, 3])
  t.same(
    await both(3, '/a', {}, shop),
    [1, 1],
    'both apply the tighter of two limits to all locations of a server',
  )

  t.same(await both(2, '/login'), [1, 1], 'both admit one request at a rate without a burst')
  await delay(3100)
  t.same(await both(2, '/login'), [1, 1], 'both admit one request again after its time')

  const waiting = await Promise.all([1, 2, 3].map(() => ask('/later/a')))
  t.equal(
    waiting.filter(([one]) => one === 'refused').length,
    1,
    'nginx delays one request and refuses the third',
  )
  t.equal(
    waiting.filter(([, other]) => other === 'refused').length,
    1,
    'the gateway refuses the third without delaying',
  )

  const first = ask('/download/held')
  while (held.length < 2) await delay(10)
  t.same(await both(1, '/download/b'), [0, 0], 'both admit one request at a time')
  for (const release of held) release()
  t.same(await first, [200, 200])
  t.same(await both(1, '/download/b'), [1, 1], 'both admit the next request afterwards')
})

t.test('a file that cannot be read is refused with a short sentence', async t => {
  const folder = t.testdir({ 'empty.conf': '\n', 'word.conf': 'a'.repeat(1_000_000) })
  const empty = await sluice(['import', 'nginx', join(folder, 'empty.conf')])
  t.match(empty, { code: 2, err: /:1:1: The file is empty\./ })
  const word = await sluice(['import', 'nginx', join(folder, 'word.conf')])
  t.match(word, { code: 2, err: /"a+…" does not end with ";" or a block\./ })
  t.ok(word.err.length < 1000)
})
