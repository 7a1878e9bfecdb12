/** The listen room alone; the test answers its requests. */
import type { Test } from 'tap'
import { createListener, type Handlers, type Listener } from '../../../gateway/listen/server.js'
import type { IncomingRequest, OutgoingResponse } from '../../../gateway/message.js'
import { type RawPeer, rawClient } from '../../helpers/raw.js'
import { wideDoor } from './connection-cap.js'

export type Answer = (req: IncomingRequest, res: OutgoingResponse) => void

/** Sends a whole response. */
export function reply(res: OutgoingResponse, body = '', status = 200, fields: readonly string[] = []): void {
  res.writeHead(status, '', fields)
  res.end(body)
}

/** Reads a body to its end and discards it. */
export function dropBody({ body }: IncomingRequest, then = (): void => {}): void {
  if (body === undefined) then()
  else body.read({ onData() {}, onEnd: then, onAbort() {} })
}

/** Calls `onClose` when the response is complete, or the client has left. */
export function onClose(res: OutgoingResponse, onClose: () => void): void {
  res.watch({ onClose })
}

/** Starts a listener and connects one client to it; both are closed with the test. */
export async function listen(
  t: Test,
  request: Answer,
  handlers: Partial<Handlers> = {},
  settings: Parameters<typeof wideDoor>[0] = {},
): Promise<{ listener: Listener; port: number; client: RawPeer }> {
  const listener = createListener(
    { request, upgrade: (_req, res) => reply(res), ...handlers },
    wideDoor(settings),
  )
  const { port } = await listener.start('127.0.0.1', 0)
  t.teardown(() => listener.drain(0))
  const client = await rawClient(port)
  t.teardown(() => client.socket.destroy())
  return { listener, port, client }
}
