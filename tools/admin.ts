/** Sends requests to the admin port of the running gateway. */
import { existsSync } from 'node:fs'
import { originMeantBy } from '../config/formats.js'
import { urlOf } from '../config/words/address.js'
import { Failure } from '../gateway/errors.js'
import { variable } from '../gateway/run/variable.js'
import { Unusable } from './command.js'
import { loadInput } from './config.js'
import type { Io } from './io.js'
import { printable } from './text.js'

const PATIENCE_MS = 5000

/** The admin port and its key; '' when it has none. */
export interface AdminPort {
  readonly origin: string
  readonly key: string
}

/**
 * The admin port at the address `where`, with the key from the environment, or the one of the configuration at `where`.
 */
export async function adminPort(where: string, io: Io): Promise<AdminPort> {
  if (/^https?:\/\//.test(where)) {
    if (URL.canParse(where)) return { origin: new URL(where).origin, key: variable('ADMIN_KEY', io.env) }
    throw new Unusable(`"${where}" is not an address such as http://127.0.0.1:8081.`)
  }
  const meant = existsSync(where) ? undefined : originMeantBy(where)
  if (meant !== undefined && /:\d+$/.test(where)) {
    throw new Unusable(`There is no configuration at ${where}. Did you mean ${meant}?`)
  }
  const { config, compiled } = await loadInput(where, io.env)
  await compiled.close()
  const { admin } = config.gateway
  return { origin: urlOf(admin), key: admin.key }
}

/** @throws {Failure} when nothing answers */
export async function askAdmin({ origin, key }: AdminPort, method: string, path: string, body?: object) {
  const url = origin + path
  const answer = await fetch(url, {
    method,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(key && { authorization: `Bearer ${key}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).catch(() => undefined)
  if (answer === undefined) throw new Failure(`Nothing answers on ${url}. Does the gateway run?`)
  // Undefined when the body is not JSON.
  const json: unknown = await answer.json().catch(() => undefined)
  return { status: answer.status, json }
}

/** Something else than a gateway's admin port has answered. */
export function noAdminPort(status: number): Failure {
  return new Failure(`What answers there is not the admin port of a gateway (${status}).`)
}

/** Throws why the admin port refused, by its response. @throws {Unusable} {Failure} */
export function refuse({ status, json }: { readonly status: number; readonly json: unknown }): never {
  const { detail } = (json ?? {}) as { detail?: unknown }
  const said = typeof detail === 'string' ? printable(detail) : undefined
  if (said !== undefined && WRONG_QUESTIONS.includes(status)) throw new Unusable(said)
  if (status === 401) throw new Failure('The admin port asks for its key: set ADMIN_KEY in the environment.')
  throw said === undefined ? noAdminPort(status) : new Failure(said)
}

const WRONG_QUESTIONS = [400, 404, 409, 422]
