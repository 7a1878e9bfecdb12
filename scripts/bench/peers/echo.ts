/**
 * The floor of any answer by a program on Node's sockets: bytes in, the same bytes out each time, sized like a refusal of
 * Sluice. Nothing is parsed.
 */
import { createServer } from 'node:net'
import { CONSTANT_BODY, CONSTANT_FIELDS } from './constant.js'

const fields = CONSTANT_FIELDS.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
const ANSWER = `HTTP/1.1 429 Too Many Requests\r\n${fields}\r\n${CONSTANT_BODY}`

createServer({ noDelay: true }, socket => {
  socket.on('data', () => socket.write(ANSWER, 'latin1')).on('error', () => socket.destroy())
}).listen(Number(process.env.PORT), '127.0.0.1')
