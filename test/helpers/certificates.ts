/** Certificates for tests, made when needed: the repository has none that could expire. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
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

/** A certificate with its key, as a client shows them. */
export interface Identity {
  readonly cert: Buffer
  readonly key: Buffer
}

/** A certificate of the authority, with these alternative names. */
export function issueCertificate(
  folder: string,
  authority: { certFile: string; keyFile: string },
  name: string,
  names: string,
  days = '2',
): Identity {
  const at = (end: string) => join(folder, `${name}.${end}`)
  const run = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' })
  writeFileSync(at('ext'), names === '' ? '' : `subjectAltName=${names}\n`)
  run(
    'req',
    '-new',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    `/CN=${name}`,
    '-keyout',
    at('key'),
    '-out',
    at('csr'),
  )
  run(
    'x509',
    '-req',
    '-in',
    at('csr'),
    '-CA',
    authority.certFile,
    '-CAkey',
    authority.keyFile,
    '-days',
    days,
    '-extfile',
    at('ext'),
    '-out',
    at('crt'),
  )
  return { cert: readFileSync(at('crt')), key: readFileSync(at('key')) }
}
