/** Delays every chunk in each direction, to simulate a Redis that is further away. */
import { connect, createServer, type Socket } from 'node:net'

const { TARGET, PORT, DELAY_MS } = process.env
const late = (from: Socket, to: Socket) => {
  from.on('data', chunk => setTimeout(() => to.write(chunk), Number(DELAY_MS)))
  from.on('close', () => to.destroy())
  from.on('error', () => to.destroy())
}
createServer({ noDelay: true }, client => {
  const target = connect({ port: Number(TARGET), host: '127.0.0.1', noDelay: true })
  late(client, target)
  late(target, client)
}).listen(Number(PORT), '127.0.0.1')
