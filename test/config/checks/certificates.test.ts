/** Files with certificates are tried as they will be used: what only OpenSSL refuses would end the start. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig } from '../../../config/load.js'
import { pluginSchemas } from '../../../gateway/plugins.js'
import { canMakeCertificates, issueCertificate, makeCertificate } from '../../helpers/certificates.js'

function start(t: Test) {
  const folder = t.testdir({ 'projects.yaml': 'version: 1\nprojects: []\n' })
  mkdirSync(join(folder, 'policies'))
  writeFileSync(
    join(folder, 'gateway.yaml'),
    `version: 1
listen: { tls: { cert: one.crt, key: one.key, clientCa: clients.pem } }
upstreams: { a: { url: "https://a.example", ca: upstream.pem } }
routes: [{ path: /**, upstream: a }]
`,
  )
  const [one, two] = [makeCertificate(folder, 'one'), makeCertificate(folder, 'two')]
  const good = { 'one.crt': one.cert, 'clients.pem': one.cert + two.cert, 'upstream.pem': two.cert }
  return {
    folder,
    one,
    two,
    /** With these texts in place of what is good. */
    faults(texts: Partial<typeof good>) {
      for (const [name, text] of Object.entries({ ...good, ...texts }))
        writeFileSync(join(folder, name), text)
      const loaded = loadConfig(folder, { env: {}, plugins: pluginSchemas })
      return 'problems' in loaded ? loaded.problems.map(({ path, message }) => `${path}: ${message}`) : []
    },
  }
}

t.test('a file that was cut off, or has something else in it, is refused with its place', async t => {
  if (!canMakeCertificates(t)) return
  const { one, two, faults } = start(t)
  t.same(faults({}), [])
  const lines = two.cert.trim().split('\n')
  const cut = {
    'in the middle': two.cert.slice(0, 300),
    'in its last line': two.cert.slice(0, -10),
    'in its first line': two.cert.slice(0, 15),
    'before its last line': `${lines.slice(0, -1).join('\n')}\n`,
  }
  for (const [where, text] of Object.entries(cut)) {
    for (const whole of [one.cert + text, `${text}\n${one.cert}`]) {
      t.match(faults({ 'clients.pem': whole }), [/^listen\.tls\.clientCa: .*clients\.pem is cut off/], where)
      t.match(faults({ 'one.crt': whole }), [/^listen\.tls\.cert: .*one\.crt is cut off/], where)
      t.match(faults({ 'upstream.pem': whole }), [/^upstreams\.a\.ca: .*upstream\.pem is cut off/], where)
    }
  }
  t.match(faults({ 'clients.pem': '' }), [/clients\.pem holds no certificate in PEM form/])
  t.match(faults({ 'clients.pem': one.cert + two.cert.replace(/\n.{9}/, '\nAAAAAAAAA') }), [
    /clients\.pem has a certificate that cannot be read: number 2 in it\.$/,
  ])
  const windows = (one.cert + two.cert).replaceAll('\n', '\r\n')
  t.same(faults({ 'clients.pem': `# ----- Machines -----\r\n${windows}` }), [], 'comments and line ends')
})

t.test('only authorities can have issued the certificates of clients', async t => {
  if (!canMakeCertificates(t)) return
  const { folder, one, faults } = start(t)
  const leaf = issueCertificate(folder, one, 'leaf', 'DNS:acme')
  const text = String(leaf.cert)
  t.match(faults({ 'clients.pem': text }), [
    /^listen\.tls\.clientCa: .* of no authority: number 1 in it is neither marked CA:TRUE nor issued by itself/,
  ])
  t.match(faults({ 'clients.pem': one.cert + text }), [/number 2 in it/])
  t.same(faults({ 'upstream.pem': text }), [], 'an upstream may be known by its own certificate')
})
