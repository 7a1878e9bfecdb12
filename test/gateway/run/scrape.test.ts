/** A scrape of the metrics while an embedded service starts. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { gatewayProcess, writeConfig } from '../../helpers/gateway-process.js'
import { send } from '../../helpers/http.js'
import { unhurried, waitUntil, within } from '../../helpers/wait.js'

/** How long a service waits for its database when it starts. */
const PATIENCE_MS = 5000

t.test('a scrape does not wait for a service that is starting', async t => {
  const sockets: Socket[] = []
  const silent = createServer(socket => sockets.push(socket.on('error', () => undefined))).listen(
    0,
    '127.0.0.1',
  )
  t.teardown(() => {
    silent.close()
    for (const socket of sockets) socket.destroy()
  })
  await once(silent, 'listening')
  const yaml = (name: string) => `version: 1
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { app: { embedded: ${name} } }
routes: [{ path: /**, upstream: app }]
`
  const folder = writeConfig(t, yaml('welcome'), {})
  const mongodb = `mongodb://127.0.0.1:${(silent.address() as AddressInfo).port}/identity`
  const { adminUrl } = await gatewayProcess(t, folder, { MONGODB_URL: mongodb })
  writeFileSync(join(folder, 'gateway.yaml'), yaml('identity'))
  await unhurried(async () => {
    const before = sockets.length
    const reload = send(`${adminUrl}/reload`, { method: 'POST' })
    await waitUntil('that the service connects to its database', () => sockets.length > before)
    const scrape = await within(PATIENCE_MS / 2, () => send(`${adminUrl}/metrics`))
    t.match(scrape, { status: 200, body: /^sluice_build_info/m })
    t.equal((await reload).status, 422)
  })
})
