/** The PROXY protocol: headers as the specification has them, and through a whole gateway. */
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { proxyHeaderIn } from '../../../gateway/listen/proxy-protocol.js'
import { makeCertificate } from '../../helpers/certificates.js'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { startApp } from '../../helpers/http.js'
import { temporaryFolder } from '../../helpers/scope.js'

const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n'

/** A header of version 2. */
function binary(command: number, family: number, addresses: readonly number[], extra = ''): Buffer {
  const rest = Buffer.concat([Buffer.from(addresses), Buffer.from(extra)])
  const head = Buffer.from([0x20 | command, family, rest.length >> 8, rest.length & 0xff])
  return Buffer.concat([Buffer.from(SIGNATURE, 'latin1'), head, rest])
}

const V4 = [...[192, 0, 2, 1], ...[198, 51, 100, 1], ...[0x1f, 0x90, 0x01, 0xbb]]
const V6 = [...[0x20, 0x01, 0x0d, 0xb8], ...Array(11).fill(0), 7, ...Array(16).fill(0), 0, 1, 0, 2]

const READ: Record<string, [text: Buffer | string, client: string | undefined]> = {
  'version 1, IPv4': ['PROXY TCP4 192.0.2.1 198.51.100.1 8080 443\r\n', '192.0.2.1'],
  'version 1, IPv6': ['PROXY TCP6 2001:db8::7 ::1 1 2\r\n', '2001:db8::7'],
  'version 1, IPv4 in IPv6': ['PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n', '::ffff:192.0.2.1'],
  'version 1, unknown': ['PROXY UNKNOWN\r\n', undefined],
  'version 1, unknown with addresses': ['PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n', undefined],
  'version 2, IPv4': [binary(1, 0x11, V4), '192.0.2.1'],
  'version 2, IPv6': [binary(1, 0x21, V6), '2001:db8:0:0:0:0:0:7'],
  'version 2, with more behind the addresses': [binary(1, 0x11, V4, '\x03\0\x04abcd'), '192.0.2.1'],
  'version 2, a health check': [binary(0, 0, []), undefined],
  'version 2, a Unix socket': [binary(1, 0x31, Array(216).fill(0)), undefined],
}

const MALFORMED: Record<string, Buffer | string> = {
  'an HTTP request': 'GET / HTTP/1.1\r\n\r\n',
  'an address of the other family': 'PROXY TCP4 2001:db8::7 ::1 1 2\r\n',
  'no address': 'PROXY TCP4 here there 1 2\r\n',
  'two spaces': 'PROXY TCP4  192.0.2.1 198.51.100.1 8080 443\r\n',
  'a line that does not end': `PROXY TCP4 ${'1'.repeat(200)}`,
  'version 3': binary(0x11, 0x11, V4),
  'another command': binary(2, 0x11, V4),
  'addresses too short': binary(1, 0x11, [1, 2, 3]),
  'a length beyond reason': Buffer.concat([
    Buffer.from(SIGNATURE, 'latin1'),
    Buffer.from([0x21, 0x11, 0xff, 0xff]),
  ]),
  'nearly the signature': '\r\n\r\n\0\r\nQUIZ\n0000',
}

t.test('a header names the client, whatever follows, and is incomplete until its last byte', async t => {
  for (const [name, [text, client]] of Object.entries(READ)) {
    const bytes = Buffer.from(text as string)
    const followed = Buffer.concat([bytes, Buffer.from('GET / HTTP/1.1\r\n\r\n')])
    t.same(proxyHeaderIn(followed), { bytes: bytes.length, client }, name)
    for (let length = 1; length < bytes.length; length += 1) {
      if (proxyHeaderIn(bytes.subarray(0, length)) !== 'incomplete') t.fail(`${name}, ${length} bytes`)
    }
  }
  for (const [name, text] of Object.entries(MALFORMED))
    t.equal(proxyHeaderIn(Buffer.from(text as string)), 'malformed', name)
})

t.test('no bytes make the reader throw, or read beyond them', async () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300 }),
      fc.constantFrom('', 'PROXY ', 'PROXY TCP4 ', SIGNATURE),
      (bytes, start) => {
        const all = Buffer.concat([Buffer.from(start, 'latin1'), bytes])
        const header = all.length === 0 ? 'incomplete' : proxyHeaderIn(all)
        return typeof header === 'string' || header.bytes <= all.length
      },
    ),
  )
})

async function start(t: Test, options: Partial<TestGatewayOptions> = {}) {
  const upstream = await startApp(t, (req, res) => res.end(`client ${req.headers['x-forwarded-for']}`))
  return testGateway(t, {
    upstream,
    limits: 'proxyProtocol: true, headTimeout: 500ms',
    settings: 'trustedProxies: [127.0.0.1]\nunknownProject: enterprise\n',
    ...options,
  })
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n'

/** What a connection that begins so gets, until it ends. */
function raw(url: string, pieces: readonly (Buffer | string)[], ends = false): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', async () => {
      for (const piece of pieces) {
        socket.write(piece)
        await new Promise(setImmediate)
      }
      if (ends) socket.end()
    })
    socket.on('data', data => {
      text += data
    })
    socket.on('error', () => {}).on('close', () => resolve(text))
  })
}

t.test('the client is who the balancer says, in one piece or byte by byte', async t => {
  const { url } = await start(t)
  t.match(await raw(url, [`PROXY TCP4 203.0.113.9 198.51.100.1 1 2\r\n${REQUEST}`]), /client 203\.0\.113\.9$/)
  t.match(await raw(url, [binary(1, 0x21, V6), REQUEST]), /client 2001:db8:0:0:0:0:0:7|client 2001:db8::7/)
  t.match(
    await raw(url, [...`PROXY TCP4 203.0.113.9 198.51.100.1 1 2\r\n${REQUEST}`]),
    /client 203\.0\.113\.9$/,
  )
  t.match(await raw(url, [binary(0, 0, []), REQUEST]), /client 127\.0\.0\.1$/, 'the balancer itself')
})

t.test(
  'from a trusted proxy a connection without a header is closed without an answer; the log says so once',
  async t => {
    const { url, lines } = await start(t)
    const said = () =>
      lines.filter(({ msg }) => String(msg).includes('does not begin with the PROXY protocol'))
    await raw(url, ['PROXY TCP4 2'], true)
    t.same(said(), [], 'a balancer may only look whether the port is open')
    t.equal(await raw(url, [REQUEST]), '')
    t.equal(await raw(url, ['PROXY TCP4 evil\r\n', REQUEST]), '')
    t.match(said(), [{ level: 'warn', from: '127.0.0.0/24' }])
    t.equal(said().length, 1)
  },
)

t.test('a limit per client counts the clients behind the balancer', async t => {
  const policies = {
    'all.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { sustained: 1 } } }]
`,
  }
  const { url } = await start(t, { policies, settings: 'trustedProxies: [127.0.0.1]\n' })
  const statusOf = async (client: string) =>
    /^HTTP\/1.1 (\d+)/.exec(await raw(url, [`PROXY TCP4 ${client} 198.51.100.1 1 2\r\n${REQUEST}`]))?.[1]
  t.equal(await statusOf('203.0.113.1'), '200')
  t.equal(await statusOf('203.0.113.1'), '429')
  t.equal(await statusOf('203.0.113.2'), '200')
})

t.test('the header comes before TLS', async t => {
  const certificate = makeCertificate(temporaryFolder(t, 'proxy-tls'), 'localhost')
  const { url } = await start(t, { tls: certificate })
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.write('PROXY TCP4 203.0.113.9 198.51.100.1 1 2\r\n')
      const secure = connectTls({ socket, servername: 'localhost', rejectUnauthorized: false }, () =>
        secure.write(REQUEST),
      )
      let text = ''
      secure.on('data', data => {
        text += data
      })
      secure.on('error', reject).on('close', () => resolve(text))
    })
  })
  t.match(text, /client 203\.0\.113\.9$/)
})
