/** The shape of one of the `upstreams` in gateway.yaml. */
import { type Static, Type } from 'typebox'
import { METHOD_OVERRIDE_FIELDS, UPSTREAM_PROTOCOLS } from '../words/words.js'
import { Origin, spreading, UrlEntry } from './addresses.js'
import { Duration } from './duration.js'
import { Strict, Word, when } from './fields.js'
import { Health } from './health.js'
import { CertificateFile } from './listen.js'
import { Retries } from './retries.js'
import { Size } from './size.js'

const Timeouts = Strict(
  {
    connect: Duration({ default: '2s', description: 'Longest wait for a connection to the upstream.' }),
    head: Duration({ default: '30s', description: 'Longest wait for the head of the response; then 504.' }),
    idle: Duration({
      default: '60s',
      description:
        'Longest pause inside a body, sent or received; also how long a client may stop reading its response before the connection is cut. A client that sends less than 240 bytes a second on average is given no more than this beyond it.',
    }),
    upgradeIdle: Duration({
      default: '1h',
      description: 'Longest time without a byte either way on an open WebSocket before both sides are cut.',
    }),
  },
  { default: {}, description: 'Timeouts for this upstream.' },
)

const EXPECTED = 'a map with "url", "urls" or "embedded"'

const EmbeddedUpstream = Strict({
  embedded: Type.String({
    maxLength: 64,
    description: 'Name of a service that runs inside this process: directory, identity or welcome.',
  }),
})
/** The secret between a gateway and a service that runs as a process of its own. */
export const GATEWAY_SECRET = /^[\x21-\x7e]{16,1024}$/

const external = {
  ...spreading,
  protocol: Word(UPSTREAM_PROTOCOLS, {
    default: 'http1',
    description:
      'How requests are sent: http1 (HTTP/1.1), h2 (HTTP/2 within TLS, for https://), or h2c (HTTP/2 in the clear, for http://). gRPC needs one of the latter. WebSockets are opened by HTTP/1.1 in any case.',
  }),
  ca: Type.Optional(
    CertificateFile(
      'PEM file with the CA certificate that verifies an https:// upstream, instead of the public ones',
    ),
  ),
  health: Type.Optional(Health),
  retries: Type.Optional(Retries),
  connections: Type.Integer({
    default: 1024,
    minimum: 1,
    maximum: 65_536,
    description:
      'Most requests in progress at one address, from each worker; more of them wait up to `timeouts.connect`, then 503. One client (an IPv4 address or IPv6 /64) gets at most three quarters. WebSockets do not count.',
  }),
  maxBody: Type.Optional(
    Size({ description: 'Largest request body; a larger one is answered 413. Unset: no limit.' }),
  ),
  secret: Type.Optional(
    Type.String({
      pattern: GATEWAY_SECRET.source,
      secret: true,
      expected: 'a secret of 16 characters or more without spaces',
      description:
        'For `sluice directory` and `sluice identity`: their GATEWAY_SECRET, sent with each request, so that they believe what this gateway says about its clients. Not for other upstreams.',
    }),
  ),
  timeouts: Timeouts,
  pathParameters: Word(['literal', 'refuse'], {
    default: 'literal',
    description:
      'How to treat ";" and "%3B" in a path: literal (plain text), or refuse (answered 400), for an upstream that cuts off parameters there, as servlet containers do, or treats both alike.',
  }),
  caseInsensitivePaths: Type.Boolean({
    default: false,
    description:
      'The upstream ignores letter case (A to Z) in paths, as Express and IIS do. Its requests are then matched and counted in lowercase and forwarded unchanged.',
  }),
  methodOverride: Type.Optional(
    Word(METHOD_OVERRIDE_FIELDS, {
      description:
        'The field in which a POST may name another method for this upstream; requests are matched and counted by that method. Unset: no such field is forwarded.',
    }),
  ),
}
const UrlUpstream = Strict(
  { url: Origin('Address of the upstream, such as http://127.0.0.1:4433.'), ...external },
  { whyRequired: 'An upstream needs "url", "urls" or "embedded".', expected: EXPECTED },
)
const UrlsUpstream = Strict({
  urls: Type.Array(UrlEntry, {
    minItems: 1,
    maxItems: 64,
    uniqueItems: true,
    description:
      'Equivalent addresses, each as text or as { url, weight }: a failing one is left out until it answers again.',
  }),
  ...external,
})
/** The addresses of an upstream outside this process. */
export function urlsOf(upstream: ExternalUpstream): readonly string[] {
  return addressesOf(upstream).map(({ url }) => url)
}

/** The addresses of an upstream outside this process, with their weights. */
export function addressesOf(upstream: ExternalUpstream): readonly { url: string; weight: number }[] {
  const written = 'urls' in upstream ? upstream.urls : [upstream.url]
  return written.map(one => (typeof one === 'string' ? { url: one, weight: 1 } : one))
}

type UpstreamEntry =
  | Static<typeof EmbeddedUpstream>
  | Static<typeof UrlUpstream>
  | Static<typeof UrlsUpstream>
export type ExternalUpstream = Exclude<UpstreamEntry, { embedded: string }>

export const Upstream = Type.Unsafe<UpstreamEntry>({
  type: 'object',
  expected: EXPECTED,
  ...when(
    { type: 'object', required: ['embedded'] },
    EmbeddedUpstream,
    when({ type: 'object', required: ['urls'] }, UrlsUpstream, UrlUpstream),
  ),
})
