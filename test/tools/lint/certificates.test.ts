/** What `sluice check` says of certificates whose time is over, has not begun or ends soon. */
import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadOrFail } from '../../../gateway/configured/load.js'
import { quiet } from '../../../tools/config.js'
import { lint } from '../../../tools/lint/lint.js'
import { canMakeCertificates, issueCertificate, makeCertificate } from '../../helpers/certificates.js'
import { sluice } from '../../helpers/command.js'

const DAY_MS = 86_400_000

/** A configuration whose certificate, `server.crt`, is valid for 30 days and issued by `ca.crt`, which is for 2. */
function scene(t: Test, tls = '', upstream = '{ url: "http://127.0.0.1:1" }') {
  const folder = t.testdir({
    'projects.yaml': 'version: 1\nprojects: []\n',
    policies: {
      'access.yaml':
        'version: 1\nkind: access\nrules: [{ id: bad, projects: ["host:bad.example"], action: deny, mode: enforce }]\n',
    },
  })
  const authority = makeCertificate(folder, 'ca')
  const { cert } = issueCertificate(folder, authority, 'server', 'DNS:localhost', '30')
  writeFileSync(
    join(folder, 'gateway.yaml'),
    `version: 1
listen:
  tls: { cert: server.crt, key: server.key${tls} }
upstreams: { a: ${upstream} }
routes: [{ path: /**, upstream: a }]
`,
  )
  const { validFrom, validTo } = new X509Certificate(cert)
  return { folder, authority, cert, from: Date.parse(validFrom), to: Date.parse(validTo) }
}

/** The warnings at a time, without those of other things. */
async function warningsAt(folder: string, now: number): Promise<string[]> {
  const loaded = await loadOrFail(folder, {}, quiet)
  await loaded.compiled.close()
  const found = lint(loaded, { now, reportOnlyDays: 30 }).filter(one => /\.crt /.test(one.message))
  return found.map(
    ({ severity, path, message }) => `${path}: ${severity}: ${message.replace(`${folder}/`, '')}`,
  )
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

if (canMakeCertificates(t)) {
  t.test(
    'the server certificate is warned of before and after its time, and 14 days before its end',
    async t => {
      const { folder, from, to } = scene(t)
      const cases: [now: number, warning: string | undefined][] = [
        [from - 1, `is not valid before ${dayOf(from)}: until then nobody accepts it.`],
        [from, undefined],
        [to - 14 * DAY_MS, undefined],
        [to - 14 * DAY_MS + 1, `expires on ${dayOf(to)}, in less than 14 days: renew it.`],
        [to, `expires on ${dayOf(to)}, in less than 14 days: renew it.`],
        [to + 1, `has expired on ${dayOf(to)}: nobody accepts it. Renew it.`],
      ]
      for (const [now, warning] of cases) {
        const expected = warning === undefined ? [] : [`listen.tls.cert: warning: server.crt ${warning}`]
        t.same(await warningsAt(folder, now), expected)
      }
    },
  )

  t.test('only the certificate that is served counts, not those behind it', async t => {
    const { folder, authority, cert } = scene(t)
    writeFileSync(join(folder, 'server.crt'), `${cert}${authority.cert}`)
    t.same(await warningsAt(folder, Date.now()), [])
  })

  t.test('authorities of clients and upstreams are looked at too', async t => {
    const { folder, authority, cert } = scene(
      t,
      ', clientCa: ca.crt',
      '{ url: "https://127.0.0.1:1", ca: ca.crt }',
    )
    const until = dayOf(Date.parse(new X509Certificate(authority.cert).validTo))
    const warning = `ca.crt expires on ${until}, in less than 14 days: renew it.`
    t.same(await warningsAt(folder, Date.now()), [
      `listen.tls.clientCa: warning: ${warning}`,
      `upstreams.a.ca: warning: ${warning}`,
    ])
    await t.test('and one in its time is enough', async t => {
      const { folder } = scene(t, '', '{ url: "https://127.0.0.1:1", ca: both.crt }')
      writeFileSync(join(folder, 'both.crt'), `${authority.cert}${cert}`)
      t.same(await warningsAt(folder, Date.now()), [])
    })
  })

  t.test('check shows the warning at its place, and still calls the configuration usable', async t => {
    const { folder } = scene(t)
    makeCertificate(folder, 'server')
    const { code, out } = await sluice(['check', '--config', folder])
    t.equal(code, 0)
    t.match(out, /gateway\.yaml:3:\d+ listen\.tls\.cert: warning: .*server\.crt expires on \d{4}-\d\d-\d\d/)
    t.match(out, /gateway\.yaml: 1 warning\./)
    t.equal((await sluice(['check', '--config', folder, '--strict'])).code, 1)
  })
}
