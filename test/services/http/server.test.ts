/** The server of both services: how it closes. */
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { createServer } from '../../../services/http/server.js'
import { waitUntil } from '../../helpers/wait.js'

/** A listening server whose one response is `body` once that resolves, and a client that keeps its connection, as a gateway does. */
async function scene(t: Test, body: PassThrough | Promise<string>) {
  const server = createServer({ secret: undefined })
  const arrived = once(server.server, 'request')
  server.get('/', async (_request, reply) => reply.send(await body))
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const asked = get(url, { agent })
  const answered = once(asked, 'response') as Promise<[IncomingMessage]>
  await arrived
  return { server, answered }
}

const mostMs = 3000

t.test('closing waits for the requests under way, not for the connections that they came on', async t => {
  let answer = (_text: string): void => undefined
  const body = new Promise<string>(resolve => {
    answer = resolve
  })
  const { server, answered } = await scene(t, body)
  const begun = performance.now()
  const closed = server.close()
  await waitUntil('closing', () => !server.server.listening)
  answer('done')
  const [response] = await answered
  t.equal(response.headers.connection, 'close', 'the gateway does not use it again')
  t.equal(Buffer.concat(await response.toArray()).toString(), 'done')
  await closed
  t.ok(performance.now() - begun < mostMs)
})

t.test('so it does when the response had begun before', async t => {
  const body = new PassThrough()
  const { server, answered } = await scene(t, body)
  body.write('half')
  const [response] = await answered
  const begun = performance.now()
  const closed = server.close()
  await waitUntil('closing', () => !server.server.listening)
  body.end(' and half')
  t.equal(Buffer.concat(await response.toArray()).toString(), 'half and half')
  await closed
  t.ok(performance.now() - begun < mostMs)
})
