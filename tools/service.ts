/** `sluice directory` and `sluice identity`: a service as a process of its own, for a gateway that names it by `url`. */

import { GATEWAY_SECRET } from '../config/schema/upstream.js'
import { Failure } from '../gateway/errors.js'
import { listenFault } from '../gateway/run/listen-fault.js'
import { logLevel, openLog, variable } from '../gateway/run/process.js'
import { defineCommand, NO_OPERANDS, Unusable } from './command.js'
import type { Io } from './io.js'

const SERVICES = {
  directory: async () => (await import('../services/directory/index.js')).start,
  identity: async () => (await import('../services/identity/index.js')).start,
}

export const directory = serviceCommand('directory', '8091')
export const identity = serviceCommand('identity', '8092')

function serviceCommand(name: keyof typeof SERVICES, port: string) {
  return defineCommand({
    name,
    summary: `Run the ${name} service as a process of its own`,
    operands: NO_OPERANDS,
    options: {
      port: { type: 'string', value: 'N', default: port, help: `port to listen on (${port}); 0: a free one` },
      host: { type: 'string', value: 'HOST', default: '127.0.0.1', help: 'address to listen on (127.0.0.1)' },
    },
    details: `For a gateway that names it by url: upstreams: { ${name}: { url: "http://127.0.0.1:${port}", secret: "\${GATEWAY_SECRET}" } }. With GATEWAY_SECRET, the service answers only requests that carry this secret, and believes what the gateway says about its clients. Without it, it answers everybody who reaches it, and believes nothing.

DATA_DIR, MONGODB_URL and the other variables are those of the embedded service. SIGTERM and SIGINT let running requests finish.`,
    example: `GATEWAY_SECRET_FILE=gateway-secret sluice ${name} --port ${port}`,
    async run({ values }, io) {
      await serve(name, { host: values.host, port: portOf(values.port) }, io)
      return undefined
    },
  })
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new Unusable(`--port is "${text}"; it must be a number from 0 to 65535.`)
}

/** Resolves once the service takes requests; it runs until SIGTERM or SIGINT. Throws a Failure. */
async function serve(
  name: keyof typeof SERVICES,
  listen: { readonly host: string; readonly port: number },
  io: Io,
): Promise<void> {
  const gatewaySecret = secretOf(io.env)
  const log = openLog(logLevel(process.env))
  const start = await SERVICES[name]()
  const service = await start({ env: io.env, log, listen, ...(gatewaySecret && { gatewaySecret }) })
    .catch(listenFault('options', listen))
    .catch(error => {
      if (error instanceof Failure) throw error
      throw new Failure(`The ${name} service cannot start: ${(error as Error).message}`, { cause: error })
    })
  for (const note of service.notes) io.err(`${note}\n`)
  if (!gatewaySecret) {
    log.warn({}, 'GATEWAY_SECRET is not set: everybody who reaches this service is answered, without limits')
  }
  let stopping = false
  const stop = async (signal: string) => {
    if (stopping) return
    stopping = true
    log.info({ signal }, 'Draining: requests under way may finish')
    await service.close()
    log.info({}, 'Stopped')
    await log.close()
    process.exit(0)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  log.info({ listen: service.url }, `The ${name} service is ready on ${service.url}`)
}

function secretOf(env: NodeJS.ProcessEnv): string | undefined {
  const secret = variable('GATEWAY_SECRET', env)
  if (secret === '') return undefined
  if (GATEWAY_SECRET.test(secret)) return secret
  throw new Failure(
    'GATEWAY_SECRET must have 16 to 1024 characters without spaces; openssl rand -hex 24 makes one.',
  )
}
