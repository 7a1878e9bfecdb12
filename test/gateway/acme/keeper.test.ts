/** What comes of orders that go wrong, and of gateways that share a folder, with an authority that lies. */
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CertificateFolder, type StoredCertificate } from '../../../gateway/acme/folder.js'
import { CertificateKeeper, type KeeperOptions } from '../../../gateway/acme/keeper.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { type FakeAuthority, fakeAuthority } from '../../helpers/fake-authority.js'
import { daysAgo, type Issue, issuer } from '../../helpers/issuer.js'
import { temporaryFolder } from '../../helpers/scope.js'
import { waitUntil } from '../../helpers/wait.js'

const DOMAINS = ['api.acme.test', 'shop.test']
const HOUR = 3_600_000
const TIMES = { look: 20, order: 10_000, stale: HOUR, first: 50, longest: 200 }

/** A keeper and what it has installed and logged. */
async function keep(
  t: Test,
  authority: FakeAuthority,
  options: Partial<KeeperOptions['settings']> & { times?: typeof TIMES; kinds?: KeeperOptions['kinds'] } = {},
) {
  const { times = TIMES, kinds = ['tls-alpn-01'], ...settings } = options
  const installed: StoredCertificate[] = []
  const lines: { level: string; message: string; reason?: string }[] = []
  const write = (level: string) => (fields: object, message: string) => {
    lines.push({ level, message, ...fields })
  }
  const keeper = new CertificateKeeper({
    settings: {
      domains: DOMAINS,
      email: undefined,
      directory: authority.directory,
      ca: authority.ca,
      folder: temporaryFolder(t, 'certificates'),
      ...settings,
    },
    kinds,
    install: async certificate => void installed.push(certificate),
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    times,
  })
  const stored = await keeper.stored()
  keeper.start()
  t.teardown(() => keeper.close())
  const failure = () =>
    waitUntil('a failure', () => lines.find(({ level }) => level === 'error')?.reason, 20_000)
  return { keeper, installed, lines, stored, failure }
}

if (canMakeCertificates(t)) {
  t.test(
    'an authority that lies has no certificate installed, and the log says why, once an attempt',
    async t => {
      const issue = issuer(t, DOMAINS)
      let issued: Issue | (() => string) = {}
      const authority = await fakeAuthority(t, csr =>
        typeof issued === 'function' ? issued() : issue(csr, issued),
      )
      const other = makeCertificate(
        temporaryFolder(t, 'certificates'),
        'other',
        DOMAINS.map(name => `DNS:${name}`).join(),
      )
      const json = (content: unknown) => (_req: unknown, res: { end(text: string): void }) =>
        res.end(JSON.stringify(content))
      const cases: readonly [
        string,
        { lies?: FakeAuthority['lies']; issued?: Issue | (() => string); reason: RegExp; order?: number },
      ][] = [
        ['other names', { issued: { names: ['api.acme.test'] }, reason: /is not for shop\.test/ }],
        ['another key', { issued: () => other.cert, reason: /is of another key/ }],
        ['expired', { issued: { from: daysAgo(9), to: daysAgo(1) }, reason: /ended on/ }],
        ['not yet valid', { issued: { from: daysAgo(-2) }, reason: /does not begin before/ }],
        ['no certificate', { issued: () => 'nothing', reason: /none by RFC 8555/ }],
        ['a huge chain', { issued: () => other.cert.repeat(200), reason: /is too long|another key/ }],
        [
          'no JSON',
          { lies: { directory: (_req, res) => res.end('<html>') }, reason: /Unable to locate|RFC 8555/ },
        ],
        ['null', { lies: { order: json(null) as never }, reason: /RFC 8555/ }],
        ['a list', { lies: { 'new-order': json([1]) as never }, reason: /cannot be used: \[1\]/ }],
        [
          'a redirect',
          {
            lies: {
              directory: (_req, res) => res.writeHead(302, { location: 'https://localhost:1/' }).end(),
            },
            reason: /Unable to locate|returned no data/,
          },
        ],
        [
          'plain HTTP',
          {
            lies: { directory: json({ newNonce: 'http://169.254.169.254/' }) as never },
            reason: /https|newAccount/,
          },
        ],
        [
          'an endless body',
          {
            lies: {
              directory(_req, res) {
                const chunk = Buffer.alloc(64 * 1024, 'x')
                const more = () => {
                  while (!res.destroyed && res.write(chunk));
                }
                res.on('drain', more).on('error', () => {})
                more()
              },
            },
            reason: /maxContentLength/,
          },
        ],
        [
          'a body that trickles',
          { lies: { directory: (_req, res) => res.write('{') }, reason: /takes too long/, order: 300 },
        ],
        ['no answer', { lies: { nonce: () => {} }, reason: /takes too long/, order: 300 }],
        [
          'a token that is a path',
          {
            lies: {
              authorization: json({
                status: 'pending',
                identifier: { type: 'dns', value: 'shop.test' },
                challenges: [{ type: 'tls-alpn-01', token: '../../etc/passwd', url: 'https://localhost:1/' }],
              }) as never,
            },
            reason: /RFC 8555/,
          },
        ],
        [
          'another domain',
          {
            lies: {
              authorization: json({
                status: 'pending',
                identifier: { type: 'dns', value: 'bank.example' },
                challenges: [{ type: 'tls-alpn-01', token: 'a', url: 'https://localhost:1/' }],
              }) as never,
            },
            reason: /RFC 8555/,
          },
        ],
        [
          'a thousand authorizations',
          {
            lies: {
              'new-order': (_req, res) => {
                res.writeHead(201, { location: `${authority.directory.replace('directory', 'order')}` })
                res.end(
                  JSON.stringify({
                    status: 'pending',
                    authorizations: Array(1000).fill('https://localhost:1/'),
                  }),
                )
              },
            },
            reason: /RFC 8555/,
          },
        ],
        [
          'a refusal in several lines',
          {
            lies: {
              'new-order': (_req, res) => {
                res.writeHead(429, { 'content-type': 'application/problem+json' })
                res.end(JSON.stringify({ type: 'x', detail: `too many\n\u001b[31m${'x'.repeat(9000)}` }))
              },
            },
            reason: /^The authority localhost:\d+ cannot be used: too many \[31mx{100,300} …\.$/,
          },
        ],
      ]
      for (const [name, { lies = {}, issued: next = {}, reason, order = TIMES.order }] of cases) {
        authority.lies = lies
        issued = next
        const folder = temporaryFolder(t, 'certificates')
        const kept = await keep(t, authority, { folder, times: { ...TIMES, order, first: HOUR } })
        t.match(await kept.failure(), reason, name)
        t.same(kept.installed, [], name)
        t.match(kept.keeper.state, { expires: null, failure: reason, retries: Date })
        await kept.keeper.close()
        t.equal(kept.lines.filter(({ level }) => level === 'error').length, 1, name)
        t.notMatch(JSON.stringify(kept.lines), /PRIVATE KEY/)
        t.same(
          readdirSync(folder).filter(file => /pem|lock/.test(file)),
          [],
          'nothing is left behind',
        )
      }
    },
  )

  t.test(
    'a certificate is renewed when two thirds of its life are over; the old one serves until then',
    async t => {
      const issue = issuer(t, DOMAINS)
      let issued: Issue = { from: daysAgo(70), to: daysAgo(-20) }
      const authority = await fakeAuthority(t, csr => issue(csr, issued))
      const folder = temporaryFolder(t, 'shared')
      const first = await keep(t, authority, { folder, times: { ...TIMES, look: HOUR } })
      await waitUntil('a certificate', () => first.installed.length === 1)
      await first.keeper.close()
      for (const name of readdirSync(folder).filter(name => /\.(pem|key)$/.test(name)))
        t.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name)

      authority.lies = { directory: (_req, res) => res.destroy() }
      issued = {}
      const kept = await keep(t, authority, { folder })
      t.same(kept.stored, first.installed[0], 'what is stored serves from the start')
      t.match(await kept.failure(), /^The authority localhost:\d+ cannot be used: socket hang up\.$/)
      t.match(kept.lines.at(-1)?.message, /the previous one stays in use/)
      t.match(kept.keeper.state, { failure: /hang up/, expires: Date })
      await waitUntil('more attempts', () => kept.keeper.orders.failed >= 3)
      t.same(kept.installed, [])

      authority.lies = {}
      await waitUntil('the renewal', () => kept.installed.length === 1)
      t.not(kept.installed[0]?.cert, first.installed[0]?.cert)
      t.not(kept.installed[0]?.key, first.installed[0]?.key, 'each has a key of its own')
      const { renews, expires, failure } = kept.keeper.state
      t.equal(failure, null)
      const share = (Number(renews) - Number(daysAgo(1))) / (Number(expires) - Number(daysAgo(1)))
      t.ok(share > 0.6 && share < 0.67, `renewed after ${share} of its life`)
    },
  )

  t.test('one that has ended serves on while there is no other, and the log says that it has', async t => {
    const issue = issuer(t, DOMAINS)
    let to = Date.now() + 3_000
    const authority = await fakeAuthority(t, csr => issue(csr, { from: daysAgo(9), to: new Date(to) }))
    const folder = temporaryFolder(t, 'shared')
    const first = await keep(t, authority, { folder, times: { ...TIMES, look: HOUR } })
    await waitUntil('a certificate', () => first.installed.length === 1)
    to = Number(first.keeper.state.expires)
    await first.keeper.close()
    authority.lies = { directory: (_req, res) => res.destroy() }
    const kept = await keep(t, authority, { folder })
    t.same(kept.stored, first.installed[0])
    await waitUntil('its end', () => Date.now() > to)
    await waitUntil('an attempt after it', () => /it has ended/.test(kept.lines.at(-1)?.message ?? ''))
  })

  t.test('of gateways that share a folder one orders, and all serve what it gets', async t => {
    const issue = issuer(t, DOMAINS)
    const authority = await fakeAuthority(t, issue)
    const folder = temporaryFolder(t, 'shared')
    const all = await Promise.all(Array.from({ length: 4 }, () => keep(t, authority, { folder })))
    await waitUntil('all', () => all.every(({ installed }) => installed.length === 1))
    t.equal(new Set(all.map(({ installed }) => installed[0]?.cert)).size, 1)
    t.equal(authority.asked.filter(what => what === 'new-order').length, 1)
    t.same(
      readdirSync(folder).filter(name => name.includes('.lock')),
      [],
    )
  })

  t.test('an order that fails for one gateway is not repeated at once by the others', async t => {
    const authority = await fakeAuthority(t, issuer(t, DOMAINS))
    authority.lies = {
      'new-order': (_req, res) => void setTimeout(() => res.destroy(), 500),
    }
    const folder = temporaryFolder(t, 'shared')
    const times = { ...TIMES, first: HOUR, longest: HOUR }
    const all = await Promise.all(Array.from({ length: 3 }, () => keep(t, authority, { folder, times })))
    await waitUntil('all', () => all.every(({ keeper }) => keeper.state.failure !== null))
    t.equal(authority.asked.filter(what => what === 'new-order').length, 1)
    t.equal(all.filter(({ keeper }) => /in vain/.test(keeper.state.failure ?? '')).length, 2)
  })

  t.test('the lock of a gateway that was killed is taken over, and its order is made at once', async t => {
    const authority = await fakeAuthority(t, issuer(t, DOMAINS))
    const folder = temporaryFolder(t, 'shared')
    const { lock } = new CertificateFolder(folder, authority.directory, DOMAINS)
    mkdirSync(lock)
    writeFileSync(join(lock, 'killed'), '')
    const times = { ...TIMES, stale: 300, first: HOUR, longest: HOUR }
    const kept = await keep(t, authority, { folder, times })
    await waitUntil('a certificate', () => kept.installed.length === 1)
    t.notOk(existsSync(lock))
    const waited = kept.lines.filter(({ message }) => /was killed while it did: waiting/.test(message))
    t.equal(waited.length, 1, 'while it waits, the log says for what')
  })

  t.test('with other domains, what is there for some of them serves until theirs is ordered', async t => {
    const authority = await fakeAuthority(t, csr => issue(csr, { names: domains }))
    const issue = issuer(t, DOMAINS)
    let domains = ['api.acme.test']
    const folder = temporaryFolder(t, 'shared')
    const before = await keep(t, authority, { folder, domains })
    await waitUntil('a certificate', () => before.installed.length === 1)
    await before.keeper.close()
    domains = DOMAINS
    const kept = await keep(t, authority, { folder, domains })
    t.same(kept.stored, before.installed[0])
    t.match(kept.keeper.state, { renews: null })
    await waitUntil('another', () => kept.installed.length === 1)
    const strangers = await keep(t, authority, {
      folder,
      domains: ['other.test'],
      times: { ...TIMES, look: HOUR },
    })
    t.equal(strangers.stored, undefined, 'none that is for none of them')
  })

  t.test('the second kind of challenge is tried where the first is not offered', async t => {
    const authority = await fakeAuthority(t, issuer(t, DOMAINS))
    const offer = (type: string) => ({
      authorization: (req: IncomingMessage, res: ServerResponse) => {
        if (authority.asked.includes('challenge')) return false
        const [, , domain] = (req.url ?? '').split('/')
        const url = authority.directory.replace('directory', `challenge/${domain}`)
        const challenges = [{ type, token: 'a', url }]
        return res.end(
          JSON.stringify({ status: 'pending', identifier: { type: 'dns', value: domain }, challenges }),
        )
      },
    })
    authority.lies = offer('tls-alpn-01')
    const kept = await keep(t, authority, { kinds: ['http-01', 'tls-alpn-01'] })
    await waitUntil('a certificate', () => kept.installed.length === 1)
    await kept.keeper.close()
    authority.asked.length = 0
    authority.lies = offer('dns-01')
    const { failure } = await keep(t, authority, { kinds: ['http-01', 'tls-alpn-01'] })
    t.match(await failure(), /offers no http-01 for \S+\.test, and offers no tls-alpn-01 for/)
  })

  t.test(
    'a folder that cannot be written is named, and an end in the middle of an order is quiet',
    async t => {
      const authority = await fakeAuthority(t, issuer(t, DOMAINS))
      const folder = join(temporaryFolder(t, 'shared'), 'file')
      writeFileSync(folder, '')
      const { failure } = await keep(t, authority, { folder })
      t.match(await failure(), `${folder} cannot be written: something else is there.`)

      authority.lies = { 'new-order': () => {} }
      const other = temporaryFolder(t, 'shared')
      const kept = await keep(t, authority, { folder: other })
      await waitUntil('the order', () => authority.asked.includes('new-order'))
      await kept.keeper.close()
      t.same(
        kept.lines.filter(({ level }) => level === 'error'),
        [],
      )
      t.same(
        readdirSync(other).filter(name => name.includes('.lock')),
        [],
      )
    },
  )
}
