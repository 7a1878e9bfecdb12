/** What commands that ask the running gateway have in common. */
import { adminPort, askAdmin, refuse } from '../admin.js'
import type { Io } from '../io.js'

/** The options that name it, and the form of the answer. */
export const LIVE = {
  live: {
    type: 'string',
    value: 'WHERE',
    default: 'config',
    help: 'the running gateway: its admin address, or the configuration that names it',
  },
  json: { type: 'boolean', help: 'the answer of the admin port instead of text' },
} as const

/** The options of acts. */
export const WISH = {
  why: { type: 'string', value: 'TEXT', help: 'the reason, for the log and the list of acts' },
  by: { type: 'string', value: 'NAME', help: 'who asks for it; default: the address of the request' },
} as const

export const UNTIL = {
  type: 'string',
  value: 'TIME',
  help: 'a day (to its end, UTC) or a moment such as 2026-12-31T18:00:00Z',
} as const

export const KEY_HELP =
  "With an address, ADMIN_KEY from the environment is the admin port's key. Exit code 1 when the gateway does not answer or cannot do it now, 2 when the request is impossible."

/** What is to be asked of the port. `query` leaves out what is undefined. */
export interface Call {
  readonly method?: string
  readonly path: string
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body?: object
}

/** The answer of the gateway that `--live` names. @throws {Unusable} {Failure} with why there is none */
export async function ask<Answer>({ method = 'GET', path, query = {}, body }: Call, where: string, io: Io) {
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

/** As JSON, or as `text` says it. */
export function tell<Answer>(
  answer: Answer,
  asJson: boolean,
  io: Io,
  text: (answer: Answer) => string,
): void {
  io.out(asJson ? `${JSON.stringify(answer, null, 2)}\n` : text(answer))
}
