/** A receiver of webhooks. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface Received {
  headers: IncomingHttpHeaders
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read events of every shape
  event: any
  at: number
}

/** A webhook receiver; `answer` gives the status of the nth call (from 0). */
export async function startReceiver(t: Test, answer: (call: number) => number | Promise<number> = () => 204) {
  const calls: Received[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', chunk => {
      text += chunk
    })
    request.on('end', async () => {
      calls.push({ headers: request.headers, text, event: JSON.parse(text), at: Date.now() })
      response.writeHead(await answer(calls.length - 1), { location: '/elsewhere' }).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, calls }
}
