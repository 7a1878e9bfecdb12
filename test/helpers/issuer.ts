/** An authority in files, for certificates with any names and dates. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { makeCertificate } from './certificates.js'
import { temporaryFolder } from './scope.js'

export interface Issue {
  readonly names?: readonly string[]
  readonly from?: Date
  readonly to?: Date
}

const OPENSSL_CA = `[ca]
default_ca = own
[own]
database = index.txt
unique_subject = no
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = optional
`

const DAY = 86_400_000
export const daysAgo = (days: number) => new Date(Date.now() - days * DAY)

/** Issues certificates for these domains, unless a test wants others, for requests in DER (base64url). */
export function issuer(t: Test, domains: readonly string[]): (csr: string, issue?: Issue) => string {
  const folder = temporaryFolder(t, 'root')
  writeFileSync(join(folder, 'index.txt'), '')
  writeFileSync(join(folder, 'ca.cnf'), OPENSSL_CA)
  const root = makeCertificate(folder, 'root')
  const stamp = (date: Date) => `${date.toISOString().replace(/[-:T]|\..*/g, '')}Z`
  return (csr: string, { names = domains, from = daysAgo(1), to = daysAgo(-89) } = {}) => {
    writeFileSync(join(folder, 'csr'), Buffer.from(csr, 'base64url'))
    writeFileSync(join(folder, 'ext'), `subjectAltName=${names.map(name => `DNS:${name}`).join(',')}\n`)
    const signed = [
      '-config',
      'ca.cnf',
      '-cert',
      root.certFile,
      '-keyfile',
      root.keyFile,
      '-subj',
      '/CN=test',
    ]
    const asked = ['-in', 'csr', '-inform', 'DER', '-extfile', 'ext']
    const dates = ['-startdate', stamp(from), '-enddate', stamp(to)]
    execFileSync('openssl', ['ca', '-batch', '-notext', ...signed, ...asked, ...dates, '-out', 'crt'], {
      cwd: folder,
      stdio: 'pipe',
    })
    return readFileSync(join(folder, 'crt'), 'utf8')
  }
}
