/**
 * The floor of any answer by a program on Node's sockets: bytes in, the same bytes out each time, sized like a refusal of
 * Sluice. Nothing is parsed.
 */
import { createServer } from 'node:net'

const BODY = JSON.stringify({ pad: 'x'.repeat(250) })
const ANSWER = `HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\nRateLimit-Policy: "${'x'.repeat(100)}"\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`

createServer({ noDelay: true }, socket => {
  socket.on('data', () => socket.write(ANSWER, 'latin1')).on('error', () => socket.destroy())
}).listen(Number(process.env.PORT), '127.0.0.1')
