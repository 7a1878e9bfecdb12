/** The certificate in force is renewed from its files, whatever the configuration says of the listener by now. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t from 'tap'
import { ConfigFiles } from '../../../config/files.js'
import { hasChanged } from '../../../config/marks.js'
import { certificateOf, nextCertificate } from '../../../gateway/run/certificate.js'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { gatewayYaml, testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'

t.test('the files stay watched while another listener waits for a restart', async t => {
  if (!canMakeCertificates(t)) return
  const folder = t.testdir()
  const [served, other, renewed] = ['served', 'other', 'renewed'].map(name => makeCertificate(folder, name))
  if (served === undefined || other === undefined || renewed === undefined) return
  const upstream = 'http://127.0.0.1:9'
  const gateway = await testGateway(t, { upstream, tls: served })
  const subject = () =>
    new Promise<string | undefined>((resolve, reject) => {
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1', { rejectUnauthorized: false })
      socket.once('error', reject).once('secureConnect', () => {
        resolve(socket.getPeerCertificate().subject.CN?.toString())
        socket.destroy()
      })
    })
  const reload = async () => (await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).status

  writeFileSync(join(gateway.folder, 'gateway.yaml'), gatewayYaml({ upstream, tls: other }))
  t.equal(await reload(), 200)
  t.equal(await subject(), 'served')
  t.notOk(hasChanged(gateway.reloader.sources))

  copyFileSync(renewed.certFile, served.certFile)
  copyFileSync(renewed.keyFile, served.keyFile)
  t.ok(hasChanged(gateway.reloader.sources), 'which the watch sees')
  t.equal(await reload(), 200)
  t.equal(await subject(), 'renewed')
})

t.test(
  'with an ordered certificate the authorities of clients are still those of the configuration',
  async t => {
    if (!canMakeCertificates(t)) return
    const folder = t.testdir()
    const [ordered, clients] = ['ordered', 'clients'].map(name => makeCertificate(folder, name)) as [
      Made,
      Made,
    ]
    const acme = { domains: ['shop.test'], directory: 'https://acme.example/', folder }
    const terms = { minVersion: 'TLSv1.2', ciphers: [], clientAuth: 'require' } as const
    const listen = { tls: { acme, clientCa: clients.certFile, ...terms } } as unknown as Listen
    const none = new ConfigFiles().contents
    t.equal(certificateOf(listen, none, undefined), undefined, 'while none was issued')
    const { certFile: file, cert, key } = ordered
    const served = { file, cert, key, ca: clients.cert }
    t.same(certificateOf(listen, none, { file, cert, key }), served)
    writeFileSync(clients.certFile, '')
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    t.same(nextCertificate(listen, none, served, log), served, 'and the last ones when their file is broken')
  },
)

type Made = ReturnType<typeof makeCertificate>
type Listen = Parameters<typeof certificateOf>[0]
