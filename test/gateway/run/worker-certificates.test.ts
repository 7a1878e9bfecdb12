/** A worker that takes another's place has the certificates in force, whatever their files say by then. */
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { canMakeCertificates, makeCertificate } from '../../helpers/certificates.js'
import { send } from '../../helpers/http.js'
import { temporaryFolder } from '../../helpers/scope.js'
import { replaceWorker, twoWorkers } from './workers.js'

t.test('certificate, key and authorities stay in force while their files are broken, or gone', async t => {
  if (!canMakeCertificates(t)) return
  const folder = temporaryFolder(t, 'certificates')
  const [served, machine, spare, inner] = ['served', 'acme', 'spare', 'inner'].map(name =>
    makeCertificate(folder, name),
  ) as [Made, Made, Made, Made]
  const clientCa = join(folder, 'authorities.pem')
  copyFileSync(machine.certFile, clientCa)
  const upstream = createServer({ cert: inner.cert, key: inner.key }, (_req, res) => res.end('done'))
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  t.teardown(() => upstream.close())
  const url = `https://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const started = await twoWorkers(t, {
    listen: { tls: { cert: served.certFile, key: served.keyFile, clientCa } },
    identify: [{ plugin: 'client-certificate', project: 'subject-cn' }],
    upstreams: { app: { url, ca: inner.certFile } },
  })
  if (started === undefined) return
  const { gateway } = started
  const get = () =>
    new Promise<string>((resolve, reject) => {
      const identity = { cert: machine.cert, key: machine.key }
      const options = { ca: [served.cert, spare.cert], servername: 'localhost', agent: false as const }
      request(gateway.url, { ...options, ...identity }, answer => {
        const { subject } = (answer.socket as TLSSocket).getPeerCertificate()
        answer.resume().on('end', () => resolve(`${answer.statusCode} by ${subject.CN}`))
      })
        .on('error', reject)
        .end()
    })
  const answers = async () => [...new Set(await Promise.all(Array.from({ length: 16 }, get)))]
  t.same(await answers(), ['200 by served'])

  const files = [served.certFile, served.keyFile, clientCa, inner.certFile]
  const before = files.map(file => readFileSync(file))
  writeFileSync(clientCa, '')
  await replaceWorker(gateway)
  t.same(await answers(), ['200 by served'], 'the authorities are gone from their file')

  for (const file of files) rmSync(file)
  writeFileSync(served.certFile, '-----BEGIN CERTIFICATE-----\n')
  await replaceWorker(gateway)
  await replaceWorker(gateway)
  t.same(await answers(), ['200 by served'], 'no worker of before is left')

  for (const [i, file] of files.entries()) writeFileSync(file, before[i] as Buffer)
  copyFileSync(spare.certFile, served.certFile)
  copyFileSync(spare.keyFile, served.keyFile)
  t.match((await send(`${gateway.adminUrl}/reload`, { method: 'POST' })).body, /"loaded"/)
  t.same(await answers(), ['200 by spare'], 'a reload serves another certificate in both')
  await replaceWorker(gateway)
  t.same(await answers(), ['200 by spare'])
})

type Made = ReturnType<typeof makeCertificate>
