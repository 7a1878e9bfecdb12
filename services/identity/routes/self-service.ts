/** What the self-service forms have in common: how they are shown, and their errors. */

import { type Html, html } from '../../http/page.js'
import type { FieldError } from '../decode/messages.js'
import { type HttpAnswer, type IdentityRequest, prefers } from '../http.js'
import { buildNodes, saidNodes } from '../render/nodes.js'
import { renderForm } from '../render/render.js'
import type { Sent } from '../render/sent.js'
import type { CompiledSchema } from '../schema/schema.js'
import type { Signer } from '../secret.js'
import type { IdentifierTaken } from '../store/contract.js'
import { issueToken, TOKEN_FIELD } from './csrf.js'
import { PAGE_HEADERS, renderPage } from './page.js'

export interface FormPlace {
  readonly path: string
  readonly heading: string
  readonly submit: string
}

export interface Shown {
  readonly schema: CompiledSchema
  readonly sent: Sent
  readonly errors?: readonly FieldError[]
  readonly hidden?: Readonly<Record<string, string>>
  readonly notice?: Html
}

/** True when the client wants a page: only browsers name HTML explicitly. */
export function isBrowser(request: IdentityRequest): boolean {
  return prefers(request.header('accept'), 'text/html', 'application/json')
}

/** True when the client wants the form's nodes: a page is for browsers, and for clients that do not say. */
export function wantsNodes(request: IdentityRequest): boolean {
  return !isBrowser(request) && prefers(request.header('accept'), 'application/json', 'text/html')
}

/** Shows forms, each with a CSRF token. */
export class FormPages {
  readonly #signer: Signer
  readonly #place: FormPlace

  constructor(signer: Signer, place: FormPlace) {
    this.#signer = signer
    this.#place = place
  }

  page(
    request: IdentityRequest,
    status: number,
    { schema, sent, errors = [], hidden, notice }: Shown,
  ): HttpAnswer {
    const { path, heading, submit } = this.#place
    const { token, headers } = issueToken(this.#signer, request)
    const { say, tag } = request.language
    const frame = { action: path, submit, hidden: { [TOKEN_FIELD]: token, ...hidden }, say }
    const said = errors.map(error => ({ ...error, message: say(error.message) }))
    const form = renderForm(frame, saidNodes(buildNodes(schema, sent, errors), say), said)
    const title = errors.length > 0 ? `Error: ${say(heading)}` : heading
    const body = renderPage(request.language, title, heading, html`${notice}${form}`)
    return { status, headers: { ...PAGE_HEADERS, 'content-language': tag, ...headers }, body }
  }

  /** The form for clients that render it themselves. */
  nodes(request: IdentityRequest, { schema, sent }: Shown, more: object = {}): HttpAnswer {
    const { token, headers } = issueToken(this.#signer, request)
    const nodes = saidNodes(buildNodes(schema, sent, []), request.language.say)
    return {
      status: 200,
      headers,
      body: { action: this.#place.path, method: 'POST', [TOKEN_FIELD]: token, ...more, nodes },
    }
  }
}

/** The error for a value that another identity has. */
export function takenError(error: IdentifierTaken): FieldError {
  return { path: `traits.${error.trait}`, code: 'taken', message: 'This is already in use.' }
}

/** The error for a browser's post without the token of the form it was shown. */
export const TOKEN_MISSING: FieldError = {
  path: '',
  code: 'csrf',
  message: 'We could not verify that you sent this yourself. Check your answers and send them again.',
}

/** The error for a write to a version that is not the newest. */
export const CHANGED_MEANWHILE: FieldError = {
  path: '',
  code: 'changed',
  message: 'Somebody else has changed these details in the meantime. Check them before you save again.',
}
