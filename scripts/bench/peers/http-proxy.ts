/** Bare http-proxy with a keep-alive agent, the baseline of all ratios. */
import { Agent, createServer, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'

// It comes without types.
const proxies = createRequire(import.meta.url)('http-proxy')

const { UPSTREAM, PORT } = process.env
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const proxy = proxies.createProxyServer({ target: UPSTREAM, agent })
proxy.on('error', (_error: Error, _req: unknown, res: ServerResponse) => res.destroy())
createServer((req, res) => proxy.web(req, res)).listen(Number(PORT), '127.0.0.1')
