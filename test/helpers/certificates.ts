/** Certificates for tests, made when needed: the repository has none that could expire. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { reportMissing } from './missing.js'

export interface TestCertificate {
  /** Paths of PEM files. */
  readonly certFile: string
  readonly keyFile: string
  readonly cert: string
  readonly key: string
}

const REMEDY = 'install openssl (Debian: apt-get install openssl).'

/** False, and reported, when certificates cannot be made. */
export function canMakeCertificates(t: Test): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    reportMissing(t, 'openssl', REMEDY)
    return false
  }
}

/** A new self-signed certificate, as `name.crt` and `name.key` in `folder`. */
export function makeCertificate(
  folder: string,
  name: string,
  hosts = 'DNS:localhost,IP:127.0.0.1',
  algorithm: readonly string[] = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
): TestCertificate {
  const certFile = join(folder, `${name}.crt`)
  const keyFile = join(folder, `${name}.key`)
  const options = ['-x509', '-newkey', ...algorithm, '-nodes', '-days', '2']
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${hosts}`]
  execFileSync('openssl', ['req', ...options, ...subject, '-keyout', keyFile, '-out', certFile], {
    stdio: 'pipe',
  })
  return {
    certFile,
    keyFile,
    cert: readFileSync(certFile, 'utf8'),
    key: readFileSync(keyFile, 'utf8'),
  }
}
