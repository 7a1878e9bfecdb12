/** The listen and forward rooms joined directly, without the rooms between them. */
import type { Test } from 'tap'
import type { Balance, Http2Wire, UpstreamProtocol } from '../../../config/words/words.js'
import { type ErrorCode, GatewayError, problem } from '../../../gateway/errors.js'
import { Backends, type UpstreamEvents } from '../../../gateway/forward/backends.js'
import { createHttpTransport } from '../../../gateway/forward/proxy.js'
import type { Lookup } from '../../../gateway/forward/resolver.js'
import type { RetrySettings } from '../../../gateway/forward/retries.js'
import type { Exchange, WeightedUrl } from '../../../gateway/forward/transport.js'
import { createUpgradeTransport } from '../../../gateway/forward/upgrade.js'
import { Stalls } from '../../../gateway/http1/stalls.js'
import { TrustedProxies } from '../../../gateway/listen/client.js'
import { readFacts } from '../../../gateway/listen/facts.js'
import { createListener } from '../../../gateway/listen/server.js'
import type { TlsSettings } from '../../../gateway/listen/tls.js'
import type { OutgoingResponse } from '../../../gateway/message.js'
import type { Project } from '../../../gateway/types.js'
import { credentialIn } from '../../helpers/credentials.js'
import { type RawPeer, type RawUpstream, rawClient, rawUpstream } from '../../helpers/raw.js'
import { wideDoor } from '../listen/connection-cap.js'

export const ACME: Project = { id: 'acme', plan: 'growth', environment: 'production' }
const fingerprintHeaders = { ja3: 'x-ja3-fingerprint', ja4: 'x-ja4-fingerprint' }

export interface Options {
  readonly url: string
  /** Further addresses of the upstream. */
  readonly others?: readonly (string | WeightedUrl)[]
  readonly trusted?: readonly string[]
  readonly proxyHeaders?: readonly string[]
  readonly methodOverride?: string
  readonly answerFields?: readonly string[]
  readonly keepUpstream?: boolean
  readonly balance?: Balance
  readonly slowStartMs?: number
  readonly retries?: RetrySettings
  /** Plays the name server; names are asked for again each 20 ms. */
  readonly lookup?: Lookup
  readonly connections?: number
  readonly maxBody?: number
  readonly connectMs?: number
  readonly headMs?: number
  readonly idleMs?: number
  readonly upgradeIdleMs?: number
  readonly mostStalls?: number
  readonly tls?: TlsSettings
  readonly http2?: Http2Wire
  /** Spoken with the upstream. */
  readonly protocol?: UpstreamProtocol
  /** Replaces the rooms in between, such as a look at the body. */
  readonly between?: (exchange: Exchange) => Promise<Exchange>
}

export interface Gateway {
  readonly port: number
  /** Codes of the requests that were rejected or failed. */
  readonly failures: ErrorCode[]
  readonly backends: Backends
  /** Reason and result of each retry, in order. */
  readonly retries: string[]
  /** `<port> ejected` and `<port> returned`, in order. */
  readonly changes: string[]
  /** How many exchanges with the upstream have ended. */
  ended: number
  /** How many requests reached the forward room. */
  forwarded: number
  goAway(): void
  drain(deadlineMs: number): Promise<void>
}

/** Starts a gateway in front of `url`; it is stopped with the test. */
export async function startGateway(t: Test, options: Options): Promise<Gateway> {
  const { url, others = [], answerFields = [], keepUpstream = false, maxBody } = options
  const {
    connections = 64,
    connectMs = 1000,
    headMs = 30_000,
    idleMs = 30_000,
    upgradeIdleMs = 30_000,
  } = options
  const timeouts = { connectMs, headMs, idleMs, upgradeIdleMs }
  const upstream = {
    name: 'upstream',
    urls: [url, ...others],
    protocol: options.protocol,
    balance: options.balance,
    slowStartMs: options.slowStartMs,
    retries: options.retries,
    resolveMs: options.lookup && 20,
    connections,
    maxBody,
    timeouts,
    fingerprintHeaders,
    proxyHeaders: options.proxyHeaders ?? [],
    methodOverride: options.methodOverride,
  }
  const events: UpstreamEvents = {
    unreachable() {},
    ejected: ({ origin: { url } }) => gateway.changes.push(`${url.port} ejected`),
    retried: (reason, result) => gateway.retries.push(`${reason} ${result}`),
    returned: ({ origin: { url } }) => gateway.changes.push(`${url.port} returned`),
  }
  const backends = new Backends(upstream, events, undefined, options.lookup)
  const http = createHttpTransport(upstream, backends, new Stalls(options.mostStalls ?? 100))
  const upgrades = createUpgradeTransport(upstream, backends)
  const facts = { trusted: new TrustedProxies(options.trusted ?? []), fingerprintHeaders, credentialIn }

  const refuse = (res: OutgoingResponse, code: ErrorCode): void => {
    gateway.failures.push(code)
    const { status, ...rest } = problem(code, '0')
    const body = JSON.stringify({ status, ...rest })
    res.writeHead(status, '', ['Content-Length', String(body.length)])
    res.end(body)
  }
  const onAnswer = (): void => {}
  const onAttempt = (): void => {}
  const onCut = (): void => {}
  const onUpstreamEnd = (): void => {
    gateway.ended++
  }
  const codeOf = (error: unknown): ErrorCode => (error instanceof GatewayError ? error.code : 'internal')

  const listener = createListener(
    {
      request(req, res) {
        const fail = (code: ErrorCode): void => refuse(res, code)
        try {
          const seen = readFacts(req, facts)
          const exchange = {
            facts: seen,
            project: ACME,
            req,
            res,
            answerFields,
            keepUpstream,
            onAttempt,
            onAnswer,
            onUpstreamEnd,
            fail,
            onCut,
          }
          gateway.forwarded++
          if (options.between === undefined) http.forward(exchange)
          else options.between(exchange).then(http.forward, () => {})
        } catch (error) {
          fail(codeOf(error))
        }
      },
      upgrade(req, res, takeOver) {
        const fail = (code: ErrorCode): void => refuse(res, code)
        try {
          const seen = readFacts(req, facts)
          const exchange = { facts: seen, project: ACME, req, res, answerFields, keepUpstream: false }
          upgrades.upgrade({ ...exchange, onAttempt, onAnswer, onUpstreamEnd, fail, onCut }, takeOver)
        } catch (error) {
          fail(codeOf(error))
        }
      },
    },
    wideDoor({ http2: options.http2 ?? 'own' }),
    options.tls,
  )
  const { port } = await listener.start('127.0.0.1', 0)
  let drained = false
  const gateway: Gateway = {
    port,
    failures: [],
    backends,
    changes: [],
    retries: [],
    ended: 0,
    forwarded: 0,
    goAway: () => upgrades.goAway(),
    async drain(deadlineMs) {
      drained = true
      await listener.drain(deadlineMs)
    },
  }
  t.teardown(async () => {
    if (!drained) await listener.drain(0)
    upgrades.close()
    backends.close()
  })
  return gateway
}

/** A scripted upstream behind a gateway, and a client in front of it. */
export async function scene(
  t: Test,
  script?: (peer: RawPeer) => unknown,
  options: Partial<Options> = {},
): Promise<{ upstream: RawUpstream; gateway: Gateway; client: RawPeer }> {
  const upstream = await rawUpstream(script)
  t.teardown(() => upstream.stop())
  const gateway = await startGateway(t, { url: upstream.url, ...options })
  return { upstream, gateway, client: await clientOf(t, gateway) }
}

export async function clientOf(t: Test, gateway: Gateway): Promise<RawPeer> {
  const client = await rawClient(gateway.port)
  t.teardown(() => client.socket.destroy())
  return client
}

/** A script that answers every request with the same bytes. */
export function answering(bytes: string): (peer: RawPeer) => Promise<void> {
  return async peer => {
    for (;;) {
      await peer.message()
      peer.send(bytes)
    }
  }
}
