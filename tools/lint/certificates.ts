/** Reports certificates that are out of their time, or soon will be. A reload takes them all the same. */
import type { X509Certificate } from 'node:crypto'
import { certificatesOf } from '../../config/checks/pem.js'
import { ConfigFiles } from '../../config/files.js'
import type { Path } from '../../config/problem.js'
import type { Remark, Subject } from './lint.js'

const DAYS = 14
const SOON_MS = DAYS * 86_400_000

export function checkCertificateDates({ loaded: { config, contents }, now }: Subject): Remark[] {
  const { listen, upstreams } = config.gateway
  const files = new ConfigFiles(contents)
  const check = (path: Path, file: string | undefined, choose: Choice): Remark[] => {
    if (file === undefined) return []
    const read = files.text(file)
    const found = 'fault' in read ? read : certificatesOf(read.text)
    // What cannot be read is an error of the configuration, and was reported as such.
    const what = 'fault' in found ? undefined : dateFault(choose(found.certificates), now)
    if (what === undefined) return []
    return [{ severity: 'warning', file: config.gatewayFile, path, message: `${file} ${what}` }]
  }
  return [
    ...check(['listen', 'tls', 'cert'], listen.tls?.cert, ([served]) => served),
    ...check(['listen', 'tls', 'clientCa'], listen.tls?.clientCa, lastingLongest),
    ...Object.entries(upstreams).flatMap(([name, upstream]) =>
      check(['upstreams', name, 'ca'], 'ca' in upstream ? upstream.ca : undefined, lastingLongest),
    ),
  ]
}

/** Which certificate of a file decides. */
type Choice = (all: readonly [X509Certificate, ...X509Certificate[]]) => X509Certificate

/** Of several authorities: while one is in its time, others in the file may be old. */
function lastingLongest(all: readonly X509Certificate[]): X509Certificate {
  return all.reduce((one, other) => (Date.parse(other.validTo) > Date.parse(one.validTo) ? other : one))
}

/** What is wrong with its time, as the end of a sentence about its file. */
function dateFault({ validFrom, validTo }: X509Certificate, now: number): string | undefined {
  const from = Date.parse(validFrom)
  const to = Date.parse(validTo)
  if (now > to) return `has expired on ${dayOf(to)}: nobody accepts it. Renew it.`
  if (now < from) return `is not valid before ${dayOf(from)}: until then nobody accepts it.`
  if (to - now < SOON_MS) return `expires on ${dayOf(to)}, in less than ${DAYS} days: renew it.`
  return undefined
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
