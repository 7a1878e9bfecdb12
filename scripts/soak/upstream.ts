/** An upstream that, depending on the path, works, stalls or fails in all the ways an upstream may. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import type { Scope } from '../../test/helpers/scope.js'

const BLOCK = Buffer.alloc(64 * 1024, 'x')

const done: RequestListener = (req, res) => req.resume().on('end', () => res.end('done'))

const PATHS: Record<string, RequestListener> = {
  '/': done,
  '/work': (req, res) => req.resume().on('end', () => setTimeout(() => res.end('done'), Math.random() * 50)),
  '/big'(_req, res) {
    let blocks = 160
    const fill = () => {
      while (blocks > 0 && !res.destroyed) {
        blocks -= 1
        if (!res.write(BLOCK)) return
      }
      res.end()
    }
    res.on('drain', fill)
    fill()
  },
  '/trickle'(_req, res) {
    let left = 10
    const timer = setInterval(() => (--left > 0 ? res.write('drop') : res.end()), 20)
    res.on('close', () => clearInterval(timer))
  },
  '/silent': req => req.resume(),
  '/cut'(_req, res) {
    res.writeHead(200, { 'content-length': 1000 }).write('part')
    setTimeout(() => res.socket?.resetAndDestroy(), 5)
  },
  '/gone': (_req, res) => res.socket?.destroy(),
  '/stall'(_req, res) {
    res.writeHead(200, { 'content-length': 1000 }).write('part')
  },
}

/** Resolves to its address. */
export async function startUpstream(t: Scope): Promise<string> {
  // Shorter than a client's pause, and not announced, so that the gateway meets connections that have just closed.
  const server = createServer({ keepAliveTimeout: 5 }, (req, res) => {
    res.on('error', () => undefined).setHeader('connection', 'keep-alive')
    const [path = ''] = req.url?.split('?', 1) ?? []
    const answer = PATHS[path] ?? done
    answer(req, res)
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket => {
    socket
      .on('error', () => undefined)
      .on('message', data => {
        if (String(data) === 'cut') socket.terminate()
        else socket.send(data)
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
