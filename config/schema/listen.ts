/** The shapes of `listen` and `admin` in gateway.yaml: the two ports, and the limits on clients' connections. */
import { Type } from 'typebox'
import { ADMIN_DEFAULT, HTTP2_WIRES } from '../words/words.js'
import { Duration } from './duration.js'
import { Strict, Word, when } from './fields.js'

export const CertificateFile = (description: string) =>
  Type.String({ minLength: 1, maxLength: 1024, description: `${description}, relative to this file.` })

/** The TLS 1.2 ciphers that RFC 9325, section 4.2 recommends: forward secrecy and authenticated encryption. */
export const TLS12_CIPHERS = ['ECDSA', 'RSA'].flatMap(signature =>
  ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map(rest => `ECDHE-${signature}-${rest}`),
)

const Acme = Strict(
  {
    domains: Type.Array(
      Type.String({
        format: 'acme-domain',
        maxLength: 253,
        expected: 'a host name in lower case, such as api.acme.test (no wildcard: that needs DNS-01)',
      }),
      {
        minItems: 1,
        maxItems: 100,
        uniqueItems: true,
        description: 'The host names that the certificate is for.',
      },
    ),
    email: Type.Optional(
      Type.String({
        pattern: '^[!-?A-~]+@[!-?A-~]+$',
        maxLength: 254,
        expected: 'an e-mail address',
        description: 'Where the authority may write to.',
      }),
    ),
    directory: Type.String({
      format: 'https-url',
      maxLength: 1024,
      expected: 'the https:// address of a directory',
      description: 'The directory of the authority, whose terms of service are agreed to.',
    }),
    ca: Type.Optional(
      CertificateFile('PEM file with the authorities that issue the certificate of the directory itself'),
    ),
    folder: Type.String({
      minLength: 1,
      maxLength: 1024,
      description:
        'Folder for keys and certificates, relative to this file. Gateways that share it order one at a time and use the same certificate.',
    }),
  },
  {
    description:
      'In place of `cert` and `key`: the certificate is ordered from an authority (ACME, RFC 8555) and renewed in time.',
  },
)

const ListenerTls = Strict(
  {
    cert: Type.Optional(
      CertificateFile('PEM file with the certificate, followed by its intermediate certificates'),
    ),
    key: Type.Optional(CertificateFile('PEM file with the private key, without a passphrase')),
    acme: Type.Optional(Acme),
    clientCa: Type.Optional(
      CertificateFile("PEM file with the authorities that issue clients' certificates"),
    ),
    clientAuth: Word(['request', 'require'], {
      default: 'request',
      description:
        'With `clientCa`: whether clients may send a certificate, or must. Without a valid one, `require` ends the handshake.',
    }),
    minVersion: Word(['TLSv1.2', 'TLSv1.3'], {
      default: 'TLSv1.2',
      description: 'Oldest version of TLS that is accepted.',
    }),
    ciphers: Type.Array(
      Type.String({
        format: 'tls12-cipher',
        maxLength: 64,
        expected: `a cipher of TLS 1.2 by its OpenSSL name, such as ${TLS12_CIPHERS[0]}`,
      }),
      {
        default: TLS12_CIPHERS,
        minItems: 1,
        maxItems: 64,
        uniqueItems: true,
        description: 'Ciphers of TLS 1.2. Those of TLS 1.3 are always offered.',
      },
    ),
  },
  { description: 'Serve HTTPS (HTTP/2 and HTTP/1.1). The files are read again when they change.' },
)

const address = (port: number) => ({
  host: Type.String({
    default: ADMIN_DEFAULT.host,
    format: 'listen-host',
    minLength: 1,
    maxLength: 253,
    expected: 'an IP address or a host name, without a port',
    description: 'Address to listen on.',
  }),
  port: Type.Integer({
    default: port,
    minimum: 0,
    maximum: 65535,
    description: 'TCP port; 0 takes any free one.',
  }),
})

const MOST_CONNECTIONS = 1_000_000

/** Largest number of workers that a configuration may ask for. */
export const MOST_WORKERS = 64
const WORKERS = `a whole number from 1 to ${MOST_WORKERS}, or auto`
const Workers = Type.Unsafe<number | 'auto'>({
  type: ['integer', 'string'],
  expected: WORKERS,
  ...when(
    { type: 'number' },
    { type: 'integer', minimum: 1, maximum: MOST_WORKERS, expected: WORKERS },
    { enum: ['auto'], expected: WORKERS },
  ),
  default: 1,
  description:
    'Processes that accept requests on this port; auto: one per core. More than one needs `redis`, where they share counters.',
})

export const DataListener = Strict(
  {
    ...address(8080),
    tls: Type.Optional(ListenerTls),
    redirectHttp: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 65535,
        description:
          'With `tls`: a second port, usually 80, that sends clients of plain HTTP to https:// at the same host and path (308).',
      }),
    ),
    http2: Word(HTTP2_WIRES, {
      default: 'own',
      description:
        'With `tls`: who speaks HTTP/2 with clients, Sluice itself (`own`) or the implementation in Node (`node`), which takes twice the CPU time and goes with version 0.3.',
    }),
    proxyProtocol: Type.Boolean({
      default: false,
      description:
        'Whether `trustedProxies` begin each connection with the PROXY protocol (version 1 or 2), which names the client. One that does not is closed.',
    }),
    workers: Workers,
    workerTimeout: Duration({
      default: '10s',
      minimum: '1s',
      description:
        'With several workers: how long one may fail to answer its supervisor before it is killed and replaced.',
    }),
    headTimeout: Duration({
      default: '10s',
      minimum: '100ms',
      description:
        'Longest time for the head of a request, from its first byte to the last, and for the first byte of a new connection. After that it gets 408 and the connection ends.',
    }),
    maxConnections: Type.Integer({
      default: 4_000,
      minimum: 1,
      maximum: MOST_CONNECTIONS,
      description:
        'Most open connections, and most HTTP/2 requests in progress, of all clients together; each worker has its share. When all connections are in use, an idle one is closed to make room; if none is idle, the new one is refused. The default fits into 768 MiB of memory.',
    }),
    maxConnectionsPerClient: Type.Integer({
      default: 1_000,
      minimum: 1,
      maximum: MOST_CONNECTIONS,
      description:
        'Most open connections, and most HTTP/2 requests in progress, of one address (IPv6: of one /64) to one worker; more are refused. Trusted proxies have no such limit.',
    }),
    maxEventLoopDelay: Duration({
      default: '500ms',
      minimum: '10ms',
      description:
        'Longest event loop delay of a process. While the delay is longer, new requests get 503 and those in progress continue.',
    }),
  },
  { default: {}, description: 'Where the gateway accepts requests.' },
)

export const AdminListener = Strict(
  {
    ...address(ADMIN_DEFAULT.port),
    key: Type.String({
      default: '',
      pattern: '^([!-~]{16,256})?$',
      secret: true,
      expected: 'empty, or a key of 16 to 256 characters without spaces',
      description:
        'Key required for everything but health: "Authorization: Bearer KEY". Without one the port listens only on loopback.',
    }),
  },
  { default: {}, description: 'Where health, metrics, state and the admin API are served.' },
)
