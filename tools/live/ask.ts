/** Shared by commands that send requests to the running gateway. */
import { adminPort, askAdmin, refuse } from '../admin.js'
import type { Io } from '../io.js'

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
}

/** The response of the gateway named by `--live`. @throws {Unusable} {Failure} with the reason if there is none */
export async function ask<Answer>(
  { method = 'GET', path, query = {}, body }: AdminCall,
  where: string,
  io: Io,
) {
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of value === undefined ? [] : [value].flat()) asked.append(name, one)
  }
  const port = await adminPort(where, io)
  const search = asked.size === 0 ? '' : `?${asked}`
  const answer = await askAdmin(port, method, path + search, body)
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
