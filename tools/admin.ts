/** Asks the admin port of the gateway that runs. */
import { Failure, loadOrFail } from '../gateway/load.js'
import { quiet } from './config.js'
import type { Io } from './io.js'

const PATIENCE_MS = 5000

/** The origin that `where` is, or that the configuration at `where` names. */
export async function adminUrl(where: string, io: Io): Promise<string> {
  if (/^https?:\/\//.test(where)) {
    if (URL.canParse(where)) return new URL(where).origin
    throw new Failure(`"${where}" is not an address such as http://127.0.0.1:8081.`)
  }
  const { config } = await loadOrFail(where, io.env, quiet)
  const { host, port } = config.gateway.admin
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

export interface AdminAnswer {
  readonly status: number
  /** Undefined when it is no JSON. */
  readonly json: unknown
}

/** @throws {Failure} when nobody answers */
export async function postToAdmin(url: string, body: object): Promise<AdminAnswer> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).catch(() => undefined)
  if (answer === undefined) throw new Failure(`Nothing answers on ${url}. Does the gateway run?`)
  const json: unknown = await answer.json().catch(() => undefined)
  return { status: answer.status, json }
}
