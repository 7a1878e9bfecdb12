/** A TCP proxy that misbehaves on command, between us and a store, an upstream or a receiver. */
import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { sleep } from './wait.js'

/** What happens to bytes and connections. `slow` and `cut` affect what the target sends. */
export type Fault =
  | { readonly kind: 'pass' }
  /** Every byte arrives this many milliseconds later, in both directions. */
  | { readonly kind: 'latency'; readonly ms: number }
  /** Connections are accepted, and nothing is forwarded until the fault changes. */
  | { readonly kind: 'blackhole' }
  /** Open and new connections end with a TCP reset. */
  | { readonly kind: 'reset' }
  /** New connections are refused; open ones are reset. */
  | { readonly kind: 'refuse' }
  /** The target's bytes trickle: this many every `ms` milliseconds. */
  | { readonly kind: 'slow'; readonly bytes: number; readonly ms: number }
  /** A connection is closed when the target has sent this many bytes on it. */
  | { readonly kind: 'cut'; readonly after: number }
  /** Open connections stay open but lead nowhere, as after a crash of the machine behind them; new ones work. */
  | { readonly kind: 'halfopen' }

export interface FaultProxy {
  readonly port: number
  /** Connections accepted so far. */
  readonly connections: number
  /** Changes the fault for open and new connections. */
  set(fault: Fault): Promise<void>
  stop(): Promise<void>
}

/** Starts a proxy on a free loopback port in front of `host:port`. It begins in `pass`. */
export async function faultProxy(port: number, host = '127.0.0.1'): Promise<FaultProxy> {
  const weather = new Weather()
  const open = new Set<Socket>()
  let connections = 0

  const track = (socket: Socket): Socket => {
    open.add(socket)
    return socket.on('error', () => undefined).once('close', () => open.delete(socket))
  }
  const resetAll = () => {
    // Node never closes a socket that is reset after it has ended, and then hangs at its exit.
    for (const socket of open) socket.writableEnded ? socket.destroy() : socket.resetAndDestroy()
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, client => {
    connections += 1
    track(client)
    if (weather.fault.kind === 'reset') client.resetAndDestroy()
    else join(client, track(connect({ port, host, allowHalfOpen: true, noDelay: true })), weather)
  })
  await listen(server, 0)
  const address = server.address() as AddressInfo

  return {
    port: address.port,
    get connections() {
      return connections
    },
    async set(fault) {
      weather.change(fault)
      if (fault.kind === 'reset' || fault.kind === 'refuse') resetAll()
      if (fault.kind === 'refuse') await close(server)
      else if (!server.listening) await listen(server, address.port)
    },
    async stop() {
      resetAll()
      await close(server)
    },
  }
}

const UNHARMED: Fault = { kind: 'pass' }

class Weather extends EventEmitter {
  fault = UNHARMED

  constructor() {
    super()
    // Every connection listens to it.
    this.setMaxListeners(0)
  }

  change(fault: Fault): void {
    this.fault = fault
    this.emit('change')
  }
}

/** Forwards bytes both ways; an error on one side resets the other. */
function join(client: Socket, target: Socket, weather: Weather): void {
  const forget = () => {
    if (weather.fault.kind !== 'halfopen') return
    client.unpipe().resume()
    target.unpipe().destroy()
  }
  weather.on('change', forget)
  client.once('close', () => weather.off('change', forget))
  const answer = passage(weather, 'answer')
  client.pipe(passage(weather, 'request')).pipe(target)
  target.pipe(answer).pipe(client)
  client.once('error', () => target.resetAndDestroy()).once('close', () => target.destroySoon())
  target.once('error', () => client.resetAndDestroy())
  answer.once('end', () => {
    if (weather.fault.kind !== 'cut') return
    client.destroySoon()
    target.destroy()
  })
}

/** One direction of a connection under the current fault: in order, and without loss. */
function passage(weather: Weather, direction: 'request' | 'answer'): Transform {
  let delivered = Promise.resolve()
  let total = 0

  async function deliver(stream: Transform, chunk: Buffer): Promise<void> {
    for (let rest = chunk; rest.length > 0; ) {
      while (weather.fault.kind === 'blackhole') await once(weather, 'change')
      if (stream.destroyed || stream.readableEnded) return
      const fault = direction === 'answer' ? weather.fault : UNHARMED
      const most = fault.kind === 'slow' ? fault.bytes : fault.kind === 'cut' ? fault.after - total : Infinity
      const piece = rest.subarray(0, Math.max(0, most))
      rest = rest.subarray(piece.length)
      total += piece.length
      stream.push(piece)
      if (fault.kind === 'cut' && total >= fault.after) {
        stream.push(null)
        return
      }
      if (fault.kind === 'slow') await sleep(fault.ms)
    }
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const delay = weather.fault.kind === 'latency' ? weather.fault.ms : 0
      const due = performance.now() + delay
      delivered = delivered.then(async () => {
        if (delay > 0) await sleep(Math.max(0, due - performance.now()))
        await deliver(this, chunk)
      })
      // Latency delays bytes without slowing the stream; every other fault applies backpressure to the sender.
      if (delay > 0) done()
      else delivered.then(() => done(), done)
    },
    flush(done) {
      delivered.then(() => done(), done)
    },
  })
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

const close = (server: Server): Promise<void> => new Promise(resolve => server.close(() => resolve()))
