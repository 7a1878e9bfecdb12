/** People change their own traits, by form or by JSON. */

import { HttpError } from '../../http/errors.js'
import { html } from '../../http/page.js'
import type { FormEntry } from '../decode/decode.js'
import type { FieldError } from '../decode/messages.js'
import { parsePatch, readForm } from '../decode/parse.js'
import {
  etagOf,
  type HttpAnswer,
  type IdentityRequest,
  type IdentityRoutes,
  ifMatch,
  type Precondition,
  refusal,
  statusOf,
  submissionOf,
} from '../http.js'
import { type Identities, PreconditionFailed, type Versioned, type WrittenIdentity } from '../identities.js'
import { sentEntries, sentTraits } from '../render/sent.js'
import type { Signer } from '../secret.js'
import { IdentifierTaken } from '../store/contract.js'
import { heldIdentity } from './cookies.js'
import { hasToken, refuseForeign } from './csrf.js'
import { PAGE_HEADERS, renderPage } from './page.js'
import {
  CHANGED_MEANWHILE,
  FormPages,
  isBrowser,
  TOKEN_MISSING,
  takenError,
  wantsNodes,
} from './self-service.js'

export const SETTINGS_PATH = '/self-service/settings'
/** The hidden field with the version that the form showed. */
const VERSION_FIELD = 'version'

/**
 * GET shows the stored traits, POST and PUT replace them, PATCH merges; all of these respect If-Match. Only clients
 * tied to an identity have access. `signer` signs tokens and cookies, `now` is the clock in milliseconds.
 */
export function settingsRoutes(identities: Identities, signer: Signer, now: () => number): IdentityRoutes {
  const forms = new FormPages(signer, { path: SETTINGS_PATH, heading: 'Your details', submit: 'Save' })

  async function show(request: IdentityRequest): Promise<HttpAnswer> {
    const held = await holder(request)
    if (!held) return nobody(request)
    const { identity, version } = held
    const schema = identities.schemaOf(request.project)
    const { say } = request.language
    const shown = {
      schema,
      sent: sentTraits(schema.root, identity.traits),
      hidden: { [VERSION_FIELD]: String(version) },
      ...(request.query.has('saved')
        ? { notice: html`<p class="notice" role="status">${say('Your details are saved.')}</p>` }
        : {}),
    }
    if (!wantsNodes(request)) {
      return forms.page(request, 200, shown)
    }
    const answer = forms.nodes(request, shown, { identity })
    return { ...answer, headers: { ...answer.headers, etag: etagOf(version) } }
  }

  async function replace(request: IdentityRequest): Promise<HttpAnswer> {
    refuseForeign(request)
    const held = await holder(request)
    if (!held) return nobody(request)
    const schema = identities.schemaOf(request.project)
    const { result, entries } = await readForm(schema, await submissionOf(request))
    const refused = async (status: number, errors: readonly FieldError[]) => {
      if (!isBrowser(request)) return refusal(status, errors)
      // Once the user has seen the other change, saving again replaces it. Until then the form keeps the
      // version it showed.
      const newest = errors.includes(CHANGED_MEANWHILE) ? await holder(request) : undefined
      const version = newest ? String(newest.version) : (shownVersion(entries) ?? String(held.version))
      const hidden = { [VERSION_FIELD]: version }
      return forms.page(request, status, { schema, sent: sentEntries(schema.root, entries), errors, hidden })
    }
    if ('errors' in result) return refused(statusOf(result.errors), result.errors)
    if (!hasToken(signer, request, entries)) return refused(403, [TOKEN_MISSING])
    try {
      const known = knownVersion(request, entries)
      return saved(request, await identities.replace(request.project, held.identity.id, result.traits, known))
    } catch (error) {
      if (error instanceof PreconditionFailed) return refused(412, [CHANGED_MEANWHILE])
      if (error instanceof IdentifierTaken) return refused(409, [takenError(error)])
      throw error
    }
  }

  async function merge(request: IdentityRequest): Promise<HttpAnswer> {
    refuseForeign(request)
    const held = await holder(request)
    if (!held) return nobody(request)
    const schema = identities.schemaOf(request.project)
    const parsed = await parsePatch(schema, await submissionOf(request), held.identity.traits)
    if ('errors' in parsed) return refusal(statusOf(parsed.errors), parsed.errors)
    const known = ifMatch(request.header('if-match'))
    return saved(request, await identities.merge(request.project, held.identity.id, parsed.patch, known))
  }

  async function holder(request: IdentityRequest): Promise<Versioned | undefined> {
    const id = heldIdentity(signer, request, now())
    return id === undefined ? undefined : identities.find(request.project, id)
  }

  return new Map([[SETTINGS_PATH, { GET: show, POST: replace, PUT: replace, PATCH: merge }]])
}

/** If-Match, and for a form the version it showed. */
function knownVersion(request: IdentityRequest, entries: readonly FormEntry[]): Precondition {
  const demanded = ifMatch(request.header('if-match'))
  const shown = shownVersion(entries)
  return version => demanded(version) && (shown === undefined || shown === String(version))
}

function shownVersion(entries: readonly FormEntry[]): string | undefined {
  const shown = entries.find(entry => entry.name === VERSION_FIELD)
  return shown && 'text' in shown ? shown.text : undefined
}

function saved(request: IdentityRequest, written: WrittenIdentity): HttpAnswer {
  if (!written) return nobody(request)
  if ('errors' in written) return refusal(statusOf(written.errors), written.errors)
  return isBrowser(request)
    ? { status: 303, headers: { location: `${SETTINGS_PATH}?saved=true` } }
    : { status: 200, headers: { etag: etagOf(written.version) }, body: written.identity }
}

function nobody(request: IdentityRequest): HttpAnswer {
  const message = 'Only the browser you registered with can change your details here, for an hour.'
  if (!isBrowser(request)) throw new HttpError(401, message, 'unknown_person')
  const { say } = request.language
  const content = html`<p>${say(message)}</p><p><a href="/self-service/registration">${say('Register')}</a></p>`
  return {
    status: 401,
    headers: PAGE_HEADERS,
    body: renderPage(request.language, 'Your details', 'You are not known here', content),
  }
}
