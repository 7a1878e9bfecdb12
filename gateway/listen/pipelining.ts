/** The answers of each connection: the one that is being sent, and those that wait for their turn. */
import { ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { InterimSender } from '../types.js'

const current = new WeakMap<Duplex, ServerResponse>()
const queues = new WeakMap<Duplex, Set<TurnResponse>>()

/** A response that notes when its turn on the connection comes and when it is over. */
export class TurnResponse extends ServerResponse implements InterimSender {
  override assignSocket(socket: Socket): void {
    current.set(socket, this)
    queues.get(socket)?.delete(this)
    super.assignSocket(socket)
  }

  override detachSocket(socket: Socket): void {
    super.detachSocket(socket)
    current.delete(socket)
  }

  /** To clients of HTTP/1.1 alone, in its turn, and to none that is slow to read: it could make us fill our memory. */
  sendInterim(status: number, fields: readonly string[]): void {
    const { socket } = this
    if (this.req.httpVersion !== '1.1' || socket === null || socket.writableNeedDrain) return
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
    for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
    socket.write(`${head}\r\n`, 'latin1')
  }

  /**
   * One that waits is cut in its turn, and closes at once when its client leaves. Node does one or the other, depending on
   * its version: it never tells of the client, or never cuts the connection.
   */
  override destroy(error?: Error): this {
    if (!queues.get(this.req.socket)?.has(this)) return super.destroy(error)
    return this.once('socket', socket => socket.destroy(error))
  }
}

/** The answer whose turn it is; undefined when the connection owes none. */
export function answerUnderWay(socket: Duplex): ServerResponse | undefined {
  return current.get(socket)
}

/** Tells a response that waits for its turn when the client leaves: Node tells only the one whose turn it is. */
export function awaitTurn(socket: Socket, res: TurnResponse): void {
  let queue = queues.get(socket)
  if (queue === undefined) {
    queue = new Set()
    queues.set(socket, queue)
    socket.once('close', () => leave(socket))
  }
  queue.add(res)
}

function leave(socket: Socket): void {
  for (const res of queues.get(socket) ?? []) abandon(res)
  queues.delete(socket)
}

/** Takes the turn from an answer that will not be sent; to its request this is as if the client had left. */
export function endTurn(socket: Duplex): void {
  const res = current.get(socket)
  if (res === undefined) return
  res.detachSocket(socket as Socket)
  abandon(res)
}

function abandon(res: ServerResponse): void {
  res.destroyed = true
  res.emit('close')
}
