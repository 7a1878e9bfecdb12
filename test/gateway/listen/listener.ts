/** The listen room alone: what a test answers its requests with. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { createListener, type Handlers, type Listener } from '../../../gateway/listen/server.js'
import { type RawPeer, rawClient } from '../../helpers/raw.js'
import { wideDoor } from './connection-cap.js'

export type Answer = (req: IncomingMessage, res: ServerResponse) => void

/** Starts a listener and connects one client to it; both are torn down with the test. */
export async function listen(
  t: Test,
  request: Answer,
  handlers: Partial<Handlers> = {},
): Promise<{ listener: Listener; port: number; client: RawPeer }> {
  const listener = createListener({ request, upgrade: (_req, res) => res.end(), ...handlers }, wideDoor())
  const { port } = await listener.start('127.0.0.1', 0)
  t.teardown(() => listener.drain(0))
  const client = await rawClient(port)
  t.teardown(() => client.socket.destroy())
  return { listener, port, client }
}
