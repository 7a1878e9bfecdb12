/**
 * The floor of any proxy on Node's sockets: each client's connection joined to one of the upstream's, every chunk passed
 * on as it came. Nothing is parsed, decided or added.
 */
import { connect, createServer, type Socket } from 'node:net'

const { UPSTREAM, PORT } = process.env
const { hostname: host, port } = new URL(UPSTREAM ?? '')

createServer({ noDelay: true }, client => {
  const upstream = connect({ host, port: Number(port), noDelay: true })
  pass(client, upstream)
  pass(upstream, client)
}).listen(Number(PORT), '127.0.0.1')

function pass(from: Socket, to: Socket): void {
  from.on('data', chunk => to.write(chunk))
  from.on('error', () => to.destroy())
  from.on('close', () => to.destroy())
}
