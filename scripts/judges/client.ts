/** A third-party client, and what is counted of it. */
import { connect, createServer } from 'node:net'
import { scoped } from '../../test/helpers/scope.js'
import type { Cases, Results } from './cases.js'
import { listening } from './judge.js'

export interface Client {
  /** Plays cases at a base address. */
  play(base: string, cases: Cases): Promise<Results>
  /** How many connections it opens for them. */
  connections(base: string, cases: Cases): Promise<number>
}

/** How many connections a client opens, counted by a relay in between. */
export function countConnections(base: string, play: (url: string) => Promise<unknown>): Promise<number> {
  const { protocol, port } = new URL(base)
  let count = 0
  const relay = createServer(socket => {
    count += 1
    const on = connect(Number(port), '127.0.0.1')
    socket.on('error', () => on.destroy()).pipe(on)
    on.on('error', () => socket.destroy()).pipe(socket)
  })
  return scoped(async t => {
    await play(`${protocol}//127.0.0.1:${await listening(t, relay)}`)
    return count
  })
}
