/** SIGHUP during the start: the gateway becomes ready all the same, and then reloads. */
import t from 'tap'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send } from '../../helpers/http.js'
import { redisUrl } from '../../helpers/redis.js'
import { waitUntil } from '../../helpers/wait.js'

/** Preloaded in each process: sends SIGHUP to it when it begins to load the gateway's modules. Node 26 has deprecated `register`. */
const hooks = `export async function load(url, context, next) {
  if (url.endsWith('/gateway/configured/load.js')) process.kill(process.pid, 'SIGHUP')
  return next(url, context)
}`
const inUrl = (code: string) => `data:text/javascript,${encodeURIComponent(code).replaceAll("'", '%27')}`
const preload = inUrl(`import { register } from 'node:module'; register('${inUrl(hooks)}')`)

for (const workers of [1, 2]) {
  t.test(`SIGHUP during the start, listen.workers: ${workers}`, async t => {
    const redis = workers === 1 ? '""' : await redisUrl(t)
    if (redis === undefined) return
    const folder = writeConfig(
      t,
      `version: 1
listen: { host: 127.0.0.1, port: 0, workers: ${workers} }
admin: { host: 127.0.0.1, port: 0 }
redis: ${redis}
upstreams: { app: { url: "http://127.0.0.1:9" } }
routes: [{ path: /**, upstream: app }]
`,
      {},
    )
    const { adminUrl, out } = await gatewayProcess(t, folder, {
      NODE_OPTIONS: `--no-deprecation --import=${preload}`,
    })
    await waitUntil('the reload', () => out().includes('"trigger":"SIGHUP"'))
    t.equal((await send(`${adminUrl}/readyz`)).status, 200)
    t.notMatch(out(), /A worker ended/)
  })
}
