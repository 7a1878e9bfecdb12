/** What the parts of the directory's benchmark have in common. */

import type { Scope } from '../../../test/helpers/scope.js'
import { inProject } from '../../lib/run.mjs'
import { installBeside } from '../install.js'
import { PROXY_CORE, peerCommand, startOn } from '../machine.js'
import type { BenchSection } from '../page.js'

export interface PartSettings {
  /** Users of the large directory. */
  readonly size: number
  readonly rounds: number
  readonly seconds: number
}

/** A section of the page; `isReached`: no target was missed. */
export type Part = (settings: PartSettings) => Promise<BenchSection & { readonly isReached: boolean }>

/** A SCIM service in a process of its own, and its directory. */
export interface Directory {
  readonly pid: number
  readonly port: number
  /** Of the SCIM intake. */
  readonly path: string
  readonly secret: string
  /** Of the management API; the peer has none. */
  readonly key: string
}

const MODULES = inProject('.cache', 'bench-directory')

/** Installs the peer. */
export const installJackson = (): void => installBeside(MODULES, { '@boxyhq/saml-jackson': '26.2.0' })

/** Starts the peer on a file with this journal mode. */
export const startJackson = (t: Scope, folder: string, journal: 'delete' | 'wal'): Promise<Directory> =>
  startPeer(t, 'saml-jackson', { MODULES: `${MODULES}/index.js`, FOLDER: folder, JOURNAL: journal })

/** Starts the service with its data in a folder. */
export const startDirectory = (t: Scope, folder: string, env: NodeJS.ProcessEnv = {}): Promise<Directory> =>
  startPeer(t, 'sluice-directory', { DATA_DIR: folder, ...env })

async function startPeer(t: Scope, name: string, env: NodeJS.ProcessEnv): Promise<Directory> {
  const { pid, match } = await startOn(t, PROXY_CORE, peerCommand(name), /^\{"port".*\}$/m, env)
  return { pid, ...JSON.parse(match[0] ?? '') }
}

interface Call {
  readonly method: string
  readonly path: string
  readonly authorization: string
  readonly body?: object | undefined
}

/** One request with a JSON response; rejects unless it succeeds. */
export async function call<T>(url: string, { method, path, authorization, body }: Call): Promise<T> {
  const headers = { authorization, 'content-type': 'application/json' }
  const sent = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
  const answer = await fetch(new URL(path, url), sent)
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return JSON.parse(text || 'null')
}
