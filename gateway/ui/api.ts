/** Requests to the admin port that serves this page, and its key, which is asked for where one is needed. */
import { find, setText } from './dom.js'

/** A response other than success; the message is the admin port's own sentence. */
export class RefusedCall extends Error {
  readonly status: number

  constructor(status: number, sentence: string) {
    super(sentence)
    this.status = status
  }
}

const KEY = 'sluice-admin-key'

/** Kept for this tab only, until it is closed. */
const adminKey = {
  get: () => sessionStorage.getItem(KEY) ?? '',
  set: (key: string) => sessionStorage.setItem(KEY, key),
}

/** The response to a request. @throws {RefusedCall} when it is not a success, TypeError when there is none */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  const key = adminKey.get()
  if (key !== '') headers.set('authorization', `Bearer ${key}`)
  const response = await fetch(path, { ...init, headers, cache: 'no-store' })
  if (!response.ok) throw new RefusedCall(response.status, await sentenceOf(response))
  return response
}

/** The JSON of the response. */
export async function askJson<Answer>(path: string, init?: RequestInit): Promise<Answer> {
  return (await ask(path, init)).json() as Promise<Answer>
}

const SELDOM_MS = 10_000

/** Something that changes seldom, and whose answer may be long: asked for every ten seconds at most. */
export class SeldomAsked<Answer> {
  readonly #path: string
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(path: string) {
    this.#path = path
  }

  /** Undefined if it was asked for just now. @throws as `ask` does */
  async ask(): Promise<Answer | undefined> {
    const now = performance.now()
    if (now - this.#askedAt < SELDOM_MS) return undefined
    this.#askedAt = now
    return askJson<Answer>(this.#path)
  }
}

/** Sends `body` as JSON. */
export function send<Answer>(method: 'POST' | 'PUT', path: string, body: object): Promise<Answer> {
  return askJson(path, {
    method,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
}

/** A query string of the fields that are not empty. */
export function query(fields: Readonly<Record<string, string | readonly string[]>>): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) => [value].flat().map(one => [name, one]))
  const text = new URLSearchParams(pairs.filter(([, value]) => value !== '')).toString()
  return text === '' ? '' : `?${text}`
}

/** The sentence that describes an error to the operator. */
export function sentence(error: unknown): string {
  if (error instanceof RefusedCall) return error.message
  return 'The gateway does not answer.'
}

async function sentenceOf(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => ({}))) as { detail?: unknown }
  return typeof problem.detail === 'string' ? problem.detail : `The gateway answered ${response.status}.`
}

const WRONG = 'This is not the key for this port.'

/** @param retry connects again with the key that was entered */
export function startKeyPrompt(retry: () => void): void {
  const form = find('key-form') as HTMLFormElement
  form.addEventListener('submit', event => {
    event.preventDefault()
    const given = (find('key') as HTMLInputElement).value.trim()
    const canBeSent = /^[\x21-\x7e]*$/.test(given)
    setText(find('key-fault'), canBeSent ? '' : WRONG)
    if (!canBeSent) return
    adminKey.set(given)
    retry()
  })
}

/** @param status the status of the response, and `reason` its sentence */
export function promptKey(status: number, reason: string): void {
  const isWrong = adminKey.get() !== ''
  adminKey.set('')
  setText(find('key-fault'), status === 429 ? reason : isWrong ? WRONG : '')
  if (!find('key-prompt').hidden) return
  find('key-prompt').hidden = false
  find('key').focus()
}
