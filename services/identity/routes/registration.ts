/** Registration by form or by JSON. */
import type { FieldError } from '../form/errors.js'
import { html } from '../form/html.js'
import { buildNodes } from '../form/nodes.js'
import { readForm } from '../form/parse.js'
import { renderForm } from '../form/render.js'
import { type Sent, sentDefaults, sentEntries } from '../form/sent.js'
import { type Answer, HttpError, prefers, type Request, type Routes, refusal, statusOf } from '../http.js'
import type { Identities, Identity } from '../identities.js'
import { PAGE_HEADERS, renderPage } from '../page.js'
import { IdentifierTaken } from '../store/contract.js'

const PATH = '/self-service/registration'
const DONE = `${PATH}/done`

/** GET shows the form, POST registers; a browser is led on to a page, any other client gets the identity. */
export function registrationRoutes(identities: Identities): Routes {
  const { schema } = identities

  async function show(request: Request): Promise<Answer> {
    const sent = sentDefaults(schema.root)
    return prefers(request.header('accept'), 'application/json', 'text/html')
      ? { status: 200, body: { action: PATH, method: 'POST', nodes: buildNodes(schema, sent, []) } }
      : page(200, sent, [])
  }

  async function register(request: Request): Promise<Answer> {
    const browser = prefers(request.header('accept'), 'text/html', 'application/json')
    const contentType = request.header('content-type')
    const { result, entries } = await readForm(schema, { contentType, body: request.body })
    const outcome = 'errors' in result ? result : await stored(request.project, result.traits)
    if ('errors' in outcome) {
      const status = statusOf(outcome.errors)
      return browser
        ? page(status, sentEntries(schema.root, entries), outcome.errors)
        : refusal(status, outcome.errors)
    }
    const { identity } = outcome
    return browser
      ? { status: 303, headers: { location: `${DONE}?identity=${identity.id}` } }
      : { status: 201, headers: { location: `/admin/identities/${identity.id}` }, body: identity }
  }

  async function stored(
    project: string,
    traits: Identity['traits'],
  ): Promise<{ identity: Identity } | { errors: readonly FieldError[] }> {
    try {
      return { identity: await identities.add(project, traits) }
    } catch (error) {
      if (!(error instanceof IdentifierTaken)) throw error
      return { errors: [takenError(error)] }
    }
  }

  /** Says that it worked. Nobody is signed in here, so no trait is shown. */
  async function done(request: Request): Promise<Answer> {
    const id = request.query.get('identity') ?? ''
    if (!(await identities.find(request.project, id))) {
      throw new HttpError(404, 'not_found', 'There is no such identity.')
    }
    const content = html`<p>Your registration is complete.</p><p>Identity: <code>${id}</code></p>`
    return { status: 200, headers: PAGE_HEADERS, body: renderPage('Registered', 'Registered', content) }
  }

  function page(status: number, sent: Sent, errors: readonly FieldError[]): Answer {
    const form = renderForm(PATH, buildNodes(schema, sent, errors), errors)
    const title = errors.length > 0 ? 'Error: Register' : 'Register'
    return { status, headers: PAGE_HEADERS, body: renderPage(title, 'Register', form) }
  }

  return new Map([
    [PATH, { GET: show, POST: register }],
    [DONE, { GET: done }],
  ])
}

/** The error of a value another identity holds. */
export function takenError(error: IdentifierTaken): FieldError {
  return { path: `traits.${error.trait}`, code: 'taken', message: 'This is already in use.' }
}
