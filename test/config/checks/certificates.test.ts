/** Files with certificates are tried as they will be used: what only OpenSSL refuses would end the start. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../config/load.js'
import { pluginSchemas } from '../../../gateway/plugins.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'

t.test('a file with more than certificates, in what looks like PEM, is refused with its place', async t => {
  if (!canMakeCertificates(t)) return
  const folder = t.testdir({ 'projects.yaml': 'version: 1\nprojects: []\n' })
  mkdirSync(join(folder, 'policies'))
  writeFileSync(
    join(folder, 'gateway.yaml'),
    `version: 1
listen: { tls: { cert: one.crt, key: one.key } }
upstreams: { a: { url: "https://a.example" } }
routes: [{ path: /**, upstream: a }]
`,
  )
  const faults = () => {
    const loaded = loadConfig(folder, { env: {}, plugins: pluginSchemas })
    return 'problems' in loaded ? loaded.problems.map(({ path, message }) => `${path}: ${message}`) : []
  }
  const { certFile } = makeCertificate(folder, 'one')
  t.same(faults(), [])
  appendFileSync(certFile, '-----BEGIN CERTIFICATE-----\nAAAA\n')
  const [fault, ...others] = faults()
  t.match(fault, /^listen\.tls\.cert: .*one\.crt cannot be used: .*bad end line\.$/)
  t.same(others, [])
})
