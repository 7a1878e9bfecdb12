/** What a process listens on: the data port, and the one beside it that leads plain HTTP there. */

import type { Gateway } from '../../config/schema/gateway.js'
import { urlOf } from '../../config/words/address.js'
import { Challenges } from '../acme/challenges.js'
import { sendRejection } from '../forward/reject.js'
import type { CertificatePair } from '../listen/certificate.js'
import { networkOf, type TrustedProxies } from '../listen/client.js'
import { redirectHandlers } from '../listen/redirect.js'
import { createListener, type Handlers, type ListenerSettings } from '../listen/server.js'
import { boundedLog } from '../observe/log-limits.js'
import { networkPrefix } from '../observe/redact.js'
import type { Log } from '../types.js'
import { listenFault } from './listen-fault.js'

export interface PortsOptions {
  readonly listen: Gateway['listen']
  /** Undefined without TLS, and while none was issued. */
  readonly certificate: CertificatePair | undefined
  /** Number of processes that listen on the same ports. */
  readonly workers: number
  /** Of the data port. */
  readonly handlers: Handlers
  trustedProxies(): TrustedProxies
  readonly turnedAway: NonNullable<ListenerSettings['turnedAway']>
  readonly log: Log
}

export interface Ports {
  /** Resolves to the address of the data port, with its scheme. */
  start(): Promise<string>
  /** Accepts no more connections, lets requests finish, and cuts those left after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>
  /** Number of open client connections. */
  readonly connections: number
  /** For new connections. */
  replaceCertificate(pair: CertificatePair): void
}

/** A redirect takes no time, so that few connections are enough. */
const REDIRECT_SHARE = 1 / 4

export function openPorts(options: PortsOptions): Ports {
  const { listen, certificate, workers, handlers, log } = options
  const faultLog = boundedLog(log)
  const settings = (share: number): ListenerSettings => ({
    ...listen,
    // The limit is for all workers together: each has its share.
    maxConnections: Math.ceil((listen.maxConnections * share) / workers),
    trustedProxies: options.trustedProxies,
    turnedAway: options.turnedAway,
    lacksHeader: proxy =>
      faultLog.warn(
        { from: networkPrefix(networkOf(proxy)) },
        'A connection from trustedProxies was closed, because it does not begin with the PROXY protocol: let the balancer send it, or set listen.proxyProtocol to false',
      ),
  })
  const { acme } = listen.tls ?? {}
  const challenges = acme && new Challenges(acme.folder)
  let port = listen.port
  const data = createListener(
    handlers,
    settings(1),
    listen.tls && {
      ...listen.tls,
      asksClients: listen.tls.clientCa !== undefined,
      certificate,
      challenge: challenges && (domain => challenges.answer('tls-alpn-01', domain)),
      log,
    },
  )
  const redirect =
    listen.redirectHttp === undefined
      ? undefined
      : createListener(
          redirectHandlers({
            port: () => port,
            challenge: async token => challenges?.answer('http-01', token),
            reject: (req, res, code) => sendRejection(req, res, { code, requestId: req.id }),
            refused: handlers.refused,
            failed: handlers.failed,
          }),
          settings(REDIRECT_SHARE),
        )

  return {
    async start() {
      const { host, redirectHttp = 0 } = listen
      await redirect?.start(host, redirectHttp).catch(listenFault('redirect', { host, port: redirectHttp }))
      const address = await data.start(host, listen.port).catch(listenFault('listen', listen))
      port = address.port
      return urlOf(address, listen.tls && 'https')
    },
    async drain(deadlineMs) {
      await Promise.all([data.drain(deadlineMs), redirect?.drain(deadlineMs)])
    },
    get connections() {
      return data.connections + (redirect?.connections ?? 0)
    },
    replaceCertificate: pair => data.replaceCertificate(pair),
  }
}
