/** The least possible proxy with node:http2: clients over TLS, the upstream by HTTP/1.1, fields passed on as they are. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { createSecureServer } from 'node:http2'

const { UPSTREAM, PORT, CERT = '', KEY = '' } = process.env
const { hostname: host, port } = new URL(UPSTREAM ?? '')
const agent = new Agent({ keepAlive: true, maxSockets: 256 })

const server = createSecureServer({ cert: readFileSync(CERT), key: readFileSync(KEY) })
server.on('stream', (stream, { ':method': method, ':path': path, ':authority': authority }) => {
  const headers = { host: authority ?? '' }
  const onward = request({ agent, host, port, method, path, headers }, answer => {
    const { connection, 'keep-alive': keepAlive, 'transfer-encoding': coding, ...fields } = answer.headers
    stream.respond({ ...fields, ':status': answer.statusCode })
    answer.pipe(stream)
  })
  onward.on('error', () => stream.destroy())
  stream.on('error', () => onward.destroy())
  stream.pipe(onward)
})
server.listen(Number(PORT), '127.0.0.1')
