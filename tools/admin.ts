/** Sends requests to the admin port of the running gateway; the options of commands that do. */
import { existsSync } from 'node:fs'
import { originMeantBy } from '../config/formats.js'
import { urlOf } from '../config/words/address.js'
import { Failure } from '../gateway/errors.js'
import { variable } from '../gateway/run/process.js'
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
export async function askAdmin(
  { origin, key }: AdminPort,
  method: string,
  path: string,
  body?: object,
  fields: Readonly<Record<string, string>> = {},
) {
  const url = origin + path
  const answer = await fetch(url, {
    method,
    headers: {
      ...fields,
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

/** Options for the running gateway's address and the format of the output. */
export const LIVE = {
  live: {
    type: 'string',
    value: 'WHERE',
    default: 'config',
    help: 'the running gateway: its admin address, or the configuration that names it',
  },
  json: { type: 'boolean', help: 'the answer of the admin port instead of text' },
} as const

/** Options of commands that change something. */
export const REASON = {
  why: { type: 'string', value: 'TEXT', help: 'the reason, for the log and the list of overrides' },
  by: { type: 'string', value: 'NAME', help: 'who asks for it; default: the address of the request' },
} as const

export const UNTIL = {
  type: 'string',
  value: 'TIME',
  help: 'a day (to its end, UTC) or a moment such as 2026-12-31T18:00:00Z',
} as const

export const KEY_HELP =
  "With an address, ADMIN_KEY from the environment is the admin port's key. Exit code 1 when the gateway does not answer or cannot do it now, 2 when the request is impossible."

/** A request to the admin port. Undefined members of `query` are left out. */
export interface AdminCall {
  readonly method?: string
  readonly path: string
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** The response of the gateway named by `--live`. @throws {Unusable} {Failure} with the reason if there is none */
export async function ask<Answer>(
  { method = 'GET', path, query = {}, body, headers }: AdminCall,
  where: string,
  io: Io,
) {
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of value === undefined ? [] : [value].flat()) asked.append(name, one)
  }
  const port = await adminPort(where, io)
  const search = asked.size === 0 ? '' : `?${asked}`
  const answer = await askAdmin(port, method, path + search, body, headers)
  if (answer.status >= 300 || answer.json === undefined) refuse(answer)
  return answer.json as Answer
}

/** Prints the response as JSON, or in the form of `text`. */
export function print<Answer>(
  answer: Answer,
  asJson: boolean,
  io: Io,
  text: (answer: Answer) => string,
): void {
  io.out(asJson ? `${JSON.stringify(answer, null, 2)}\n` : text(answer))
}
