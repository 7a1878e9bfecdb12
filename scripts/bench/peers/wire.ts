/**
 * The floor of any answer over Sluice's own HTTP/1.1: heads are read and checked, a constant refusal is sent. Nobody is
 * identified, nothing is counted or recorded.
 */
import { createServer } from 'node:net'
import { ServerConnections } from '../../../gateway/http1/server-connections.js'
import { CONSTANT_BODY, CONSTANT_FIELDS } from './constant.js'

const connections = new ServerConnections(
  {
    request(_req, res) {
      res.writeHead(429, 'Too Many Requests', CONSTANT_FIELDS)
      res.end(CONSTANT_BODY)
    },
    upgrade: (_req, res) => res.cut(),
  },
  { maxHead: 65_536, headTimeoutMs: 10_000, requestTimeoutMs: 300_000, keepAliveMs: 75_000 },
)
createServer({ noDelay: true }, socket => {
  connections.accept(socket, { address: socket.remoteAddress ?? '', fingerprints: undefined })
}).listen(Number(process.env.PORT), '127.0.0.1')
