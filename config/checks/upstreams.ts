/** Whether the keys of an upstream fit together. Pure. */
import { isIP } from 'node:net'
import type { Path } from '../problem.js'
import { type ExternalUpstream, urlsOf } from '../schema/upstream.js'
import type { UpstreamProtocol } from '../words/words.js'

/** A fault of one key, by its path within the upstream. */
interface KeyFault {
  readonly path: Path
  readonly message: string
}

export function upstreamFaults(upstream: ExternalUpstream): KeyFault[] {
  const urls = urlsOf(upstream)
  const protocol = protocolFault(upstream.protocol, urls)
  return [
    ...(protocol === undefined ? [] : [{ path: ['protocol'], message: protocol }]),
    ...repeated(urls),
    ...healthFaults(upstream),
    ...resolveFaults(upstream, urls),
  ]
}

/** Whether HTTP/2 is within TLS is said twice: by the protocol and by the addresses. */
function protocolFault(protocol: UpstreamProtocol, urls: readonly string[]): string | undefined {
  const isTls = (url: string) => /^https:/i.test(url)
  if (protocol === 'h2' && !urls.every(isTls))
    return '"h2" is HTTP/2 within TLS. Write "h2c" for an http:// upstream, or https:// in its address.'
  if (protocol === 'h2c' && urls.some(isTls))
    return '"h2c" is HTTP/2 in the clear. Write "h2" for an https:// upstream, or http:// in its address.'
  return undefined
}

/** Addresses that are written twice, with the same weight or another, or in another spelling. */
function repeated(urls: readonly string[]): KeyFault[] {
  const origins = urls.map(url => (URL.canParse(url) ? new URL(url).origin : url))
  return origins.flatMap((origin, i) => {
    const first = origins.indexOf(origin)
    const message = `This address is also urls[${first}]: give it once, with a weight if it should get more requests.`
    return first === i ? [] : [{ path: ['urls', i], message }]
  })
}

function healthFaults({ health }: ExternalUpstream): KeyFault[] {
  if (health === undefined || health.timeout <= health.every) return []
  const message =
    'A check must end before the next one is due: "timeout", 2s unless it is written, must not be longer than "every".'
  return [{ path: ['health', 'timeout'], message }]
}

function resolveFaults({ resolve }: ExternalUpstream, urls: readonly string[]): KeyFault[] {
  const isAddress = (url: string) =>
    URL.canParse(url) && isIP(new URL(url).hostname.replace(/^\[|\]$/g, '')) !== 0
  if (resolve === undefined || !urls.every(isAddress)) return []
  return [{ path: ['resolve'], message: 'Only names are resolved, and every address here is an IP address.' }]
}
