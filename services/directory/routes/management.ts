import { answerErrors, HttpError } from '../../http/errors.js'
import { sourceOf } from '../../http/server.js'
import { refuseWrongKeys } from '../../http/wrong-keys.js'
import { presentsKey } from '../../keys.js'
import type { ServiceLog } from '../../log.js'
import { checkBodies } from './body.js'
import { addDirectories } from './directories.js'
import { addEvents } from './events.js'
import { addConsentLinks, addSyncExternal } from './external.js'
import { acceptJson, errorAnswers, type RouteParts, type Server, wwwAuthenticate } from './http.js'
import { addPeople } from './people.js'
import { addSetupLinks } from './setup-links.js'
import { addWebhookLog } from './webhook-log.js'
import { addWebhooks } from './webhooks.js'

/** Paths of the management API; the second is an alias. */
export const managementPaths = ['/api/v1/directory-sync', '/api/v1/dsync'] as const

/** The management API. Everything under the path needs the key; responses are `{data, error}`. */
export function addManagement(server: Server, parts: RouteParts): void {
  const { keyHashes, wrongKey } = parts
  acceptJson(server, ['application/json'])
  checkBodies(server)
  answerManagementErrors(server, parts.log)
  server.addHook('onRequest', async request => {
    const { authorization } = request.headers
    if (presentsKey(authorization, keyHashes)) return
    await refuseWrongKeys(wrongKey, 'management', { owner: '', source: sourceOf(request), authorization })
    throw new HttpError(401, 'The header "Authorization: Api-Key <key>" is missing or its key is wrong.')
  })
  addDirectories(server, parts)
  addPeople(server, parts)
  addEvents(server, parts)
  addConsentLinks(server, parts)
  addSyncExternal(server, parts)
  addWebhookLog(server, parts)
  addWebhooks(server, parts)
  addSetupLinks(server, parts)
}

/** Errors as `{data: null, error: {message, code}}`, for known and unknown paths alike. */
export function answerManagementErrors(server: Server, log: ServiceLog): void {
  answerErrors(server, {
    ...errorAnswers(log),
    challenge: wwwAuthenticate,
    send: ({ message, status: code }, _request, reply) =>
      reply.send({ data: null, error: { message, code } }),
  })
}
