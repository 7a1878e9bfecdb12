/** An ACME authority that does not check the domains, and lies where a test wants it to. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { makeCertificate, type TestCertificate } from './certificates.js'
import { temporaryFolder } from './scope.js'

const CREATED = 201

export interface FakeAuthority {
  readonly directory: string
  /** In PEM form: the authority of its own certificate. */
  readonly ca: string
  /** What was asked for: the last part of each path. */
  readonly asked: string[]
  /** Responds in place of the authority, by the last part of a path; returns false to leave that to it. */
  lies: Readonly<Record<string, (req: IncomingMessage, res: ServerResponse) => unknown>>
}

/** @param issue makes the chain for a request (DER in base64url) */
export async function fakeAuthority(t: Test, issue: (csr: string) => string): Promise<FakeAuthority> {
  const own: TestCertificate = makeCertificate(temporaryFolder(t, 'authority'), 'authority')
  const asked: string[] = []
  const state = { directory: '', ca: own.cert, asked, lies: {} as FakeAuthority['lies'] }
  let base = ''
  let domains: string[] = []
  let answered: Set<string> = new Set()
  let chain = ''

  const orderNow = () => ({
    status: chain !== '' ? 'valid' : answered.size === domains.length ? 'ready' : 'pending',
    identifiers: domains.map(value => ({ type: 'dns', value })),
    authorizations: domains.map(domain => `${base}/authorization/${domain}`),
    finalize: `${base}/finalize`,
    ...(chain !== '' && { certificate: `${base}/certificate` }),
  })
  const authorizationOf = (domain: string) => ({
    status: answered.has(domain) ? 'valid' : 'pending',
    identifier: { type: 'dns', value: domain },
    challenges: ['http-01', 'tls-alpn-01'].map(type => ({
      type,
      url: `${base}/challenge/${domain}`,
      token: `token-of-${domain.replaceAll('.', '-')}`,
      status: 'pending',
    })),
  })

  const server = createServer({ cert: own.cert, key: own.key }, async (req, res) => {
    let text = ''
    for await (const chunk of req) text += chunk
    const [, what = '', name = ''] = (req.url ?? '').split('/')
    asked.push(what)
    if (state.lies[what] !== undefined && state.lies[what](req, res) !== false) return
    const { payload = '' } = text === '' ? {} : JSON.parse(text)
    const body = payload === '' ? {} : JSON.parse(String(Buffer.from(payload, 'base64url')))
    const send = (content: unknown, fields = {}, status = 200) => {
      res.writeHead(status, { 'replay-nonce': 'nonce', 'content-type': 'application/json', ...fields })
      res.end(typeof content === 'string' ? content : JSON.stringify(content))
    }
    switch (what) {
      case 'directory':
        return send({
          newNonce: `${base}/nonce`,
          newAccount: `${base}/account`,
          newOrder: `${base}/new-order`,
        })
      case 'account':
        return send({ status: 'valid' }, { location: `${base}/account` }, CREATED)
      case 'new-order':
        domains = body.identifiers.map(({ value }: { value: string }) => value)
        answered = new Set()
        chain = ''
        return send(orderNow(), { location: `${base}/order` }, CREATED)
      case 'order':
        return send(orderNow())
      case 'authorization':
        return send(authorizationOf(name))
      case 'challenge':
        answered.add(name)
        return send({ status: 'processing' })
      case 'finalize':
        chain = issue(body.csr)
        return send(orderNow())
      case 'certificate':
        return send(chain, { 'content-type': 'application/pem-certificate-chain' })
      default:
        return send({})
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  base = `https://localhost:${(server.address() as AddressInfo).port}`
  state.directory = `${base}/directory`
  return state
}
