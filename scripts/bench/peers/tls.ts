/** What a TLS connection takes in Node by itself: nothing is read, and any bytes are answered with some. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:tls'

const { PORT, CERT = '', KEY = '' } = process.env
const files = { cert: readFileSync(CERT), key: readFileSync(KEY) }

createServer({ ...files, ALPNProtocols: ['h2'] }, socket => {
  socket.once('data', () => socket.write('hello')).on('error', () => socket.destroy())
}).listen(Number(PORT), '127.0.0.1')
