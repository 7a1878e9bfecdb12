/** What all judges have in common: a place for files, the gateway under test, and the form of what they find. */
import { mkdtempSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import type { Http2Wire, UpstreamProtocol } from '../../config/words/words.js'
import { makeCertificate, type TestCertificate } from '../../test/helpers/certificates.js'
import {
  type GatewayProcess,
  gatewayProcess,
  oneUpstream,
  projectsYaml,
  writeConfig,
} from '../../test/helpers/gateway-process.js'
import { type Scope, temporaryFolder } from '../../test/helpers/scope.js'

/** Rows for the table, a sentence for each fault, and notes. */
export interface Found {
  readonly rows: readonly (readonly string[])[]
  readonly faults: readonly string[]
  readonly notes?: readonly string[]
}

export type Judge = (t: Scope, place: Place) => Promise<Found>

/** A folder, with a certificate for 127.0.0.1. */
export interface Place extends TestCertificate {
  readonly path: string
}

export function makePlace(t: Scope): Place {
  const path = temporaryFolder(t, 'judges')
  return { path, ...makeCertificate(path, 'localhost') }
}

/** A new folder in the place. */
export const folderIn = ({ path }: Place, name: string): string => mkdtempSync(join(path, `${name}-`))

const LIMITS = `version: 1
kind: project-limits
buckets: { catch-all: ["*"] }
limits: [{ for: [{}], quotas: { catch-all: { burst: 1000000, sustained: 60000000 } } }]
`

export interface JudgedSettings {
  readonly tls?: boolean
  /** Who speaks HTTP/2; the default of the setting if omitted. */
  readonly http2?: Http2Wire
  /** How the upstream is spoken to. */
  readonly protocol?: UpstreamProtocol
  readonly headTimeout?: string
  /** The longest pause inside a body. */
  readonly idle?: string
}

/** Starts the gateway in front of a port, with limits that are never reached. */
export async function startGateway(
  t: Scope,
  { certFile: cert, keyFile: key }: Place,
  port: number,
  { tls = false, http2, protocol = 'http1', headTimeout = '10s', idle = '60s' }: JudgedSettings = {},
): Promise<GatewayProcess & { readonly port: number }> {
  const settings = {
    listen: { headTimeout, ...(http2 ? { http2 } : {}), ...(tls ? { tls: { cert, key } } : {}) },
    ...oneUpstream(`http://127.0.0.1:${port}`, { protocol, timeouts: { idle } }),
    log: { decisions: 'refused' },
    drain: '1s',
  }
  const folder = writeConfig(t, settings, { 'limits.yaml': LIMITS }, projectsYaml(['judged']))
  const gateway = await gatewayProcess(t, folder)
  return { ...gateway, port: Number(new URL(gateway.url).port) }
}

/** Lets a server listen on a free port of 127.0.0.1 until the end; resolves to the port. */
export async function listening(t: Scope, server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
