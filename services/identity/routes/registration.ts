/** Registration by form or by JSON. */

import { html } from '../../http/page.js'
import type { JsonObject } from '../../json.js'
import type { FieldError } from '../decode/messages.js'
import { readForm } from '../decode/parse.js'
import {
  etagOf,
  type HttpAnswer,
  type IdentityRequest,
  type IdentityRoutes,
  noIdentity,
  refusal,
  statusOf,
  submissionOf,
} from '../http.js'
import type { Identities, Versioned } from '../identities.js'
import { sentDefaults, sentEntries } from '../render/sent.js'
import type { Signer } from '../secret.js'
import { IdentifierTaken } from '../store/contract.js'
import { holdIdentity } from './cookies.js'
import { hasToken, refuseForeign } from './csrf.js'
import { PAGE_HEADERS, renderPage } from './page.js'
import { FormPages, isBrowser, TOKEN_MISSING, takenError, wantsNodes } from './self-service.js'
import { SETTINGS_PATH } from './settings.js'

const PATH = '/self-service/registration'
const DONE = `${PATH}/done`

/**
 * GET shows the form, POST registers: a browser is redirected to a page, any other client gets the identity, and a
 * cookie ties both to it for a limited time. `signer` signs tokens and cookies, `now` is the clock in milliseconds.
 */
export function registrationRoutes(
  identities: Identities,
  signer: Signer,
  now: () => number,
): IdentityRoutes {
  const forms = new FormPages(signer, { path: PATH, heading: 'Register', submit: 'Register' })

  async function show(request: IdentityRequest): Promise<HttpAnswer> {
    const schema = identities.schemaOf(request.project)
    const shown = { schema, sent: sentDefaults(schema.root) }
    return wantsNodes(request) ? forms.nodes(request, shown) : forms.page(request, 200, shown)
  }

  async function register(request: IdentityRequest): Promise<HttpAnswer> {
    refuseForeign(request)
    const schema = identities.schemaOf(request.project)
    const { result, entries } = await readForm(schema, await submissionOf(request))
    // Fields that were not sent show their defaults again.
    const sentBack = () => sentEntries(schema.root, entries, sentDefaults(schema.root))
    const refused = (status: number, errors: readonly FieldError[]) =>
      isBrowser(request)
        ? forms.page(request, status, { schema, sent: sentBack(), errors })
        : refusal(status, errors)
    if ('errors' in result) return refused(statusOf(result.errors), result.errors)
    if (!hasToken(signer, request, entries)) return refused(403, [TOKEN_MISSING])
    const outcome = await stored(request.project, result.traits)
    if ('errors' in outcome) return refused(statusOf(outcome.errors), outcome.errors)
    const { identity, version } = outcome
    const held = holdIdentity(signer, request, identity.id, now())
    return isBrowser(request)
      ? { status: 303, headers: { ...held, location: `${DONE}?identity=${identity.id}` } }
      : {
          status: 201,
          headers: { ...held, location: `/admin/identities/${identity.id}`, etag: etagOf(version) },
          body: identity,
        }
  }

  async function stored(
    project: string,
    traits: JsonObject,
  ): Promise<Versioned | { errors: readonly FieldError[] }> {
    try {
      return await identities.add(project, traits)
    } catch (error) {
      if (!(error instanceof IdentifierTaken)) throw error
      return { errors: [takenError(error)] }
    }
  }

  /** Confirms the registration. The URL may have been passed on, so no trait is shown. */
  async function done(request: IdentityRequest): Promise<HttpAnswer> {
    const id = request.query.get('identity') ?? ''
    if (!(await identities.find(request.project, id))) throw noIdentity()
    const { say } = request.language
    const content = html`<p>${say('Your registration is complete.')}</p><p>${say('Identity:')} <code>${id}</code></p>
<p><a href="${SETTINGS_PATH}">${say('Change your details')}</a></p>`
    const body = renderPage(request.language, 'Registered', 'Registered', content)
    return { status: 200, headers: PAGE_HEADERS, body }
  }

  return new Map([
    [PATH, { GET: show, POST: register }],
    [DONE, { GET: done }],
  ])
}
