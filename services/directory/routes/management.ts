import type { Log } from '../log.js'
import { credential, isKeyOf, wwwAuthenticate } from './auth.js'
import { addDirectories, type DirectoryParts } from './directories.js'
import { addEvents } from './events.js'
import { addConsentLinks, addSyncExternal, type ExternalRouteParts } from './external.js'
import { acceptJson, explain, HttpError, logFault, nothingHere, retryAfter, type Server } from './http.js'
import { addPeople } from './people.js'
import { addSetupLinks } from './setup-links.js'
import { addWebhookLog } from './webhook-log.js'
import { addWebhooks, type WebhookParts } from './webhooks.js'
import { refuseHaste, type WrongKey } from './wrong-keys.js'

export interface ManagementParts extends DirectoryParts, WebhookParts, ExternalRouteParts {
  readonly keyHashes: readonly Buffer[]
  readonly wrongKey: WrongKey
  readonly log: Log
}

/** Paths of the management API; the second is an alias. */
export const managementPaths = ['/api/v1/directory-sync', '/api/v1/dsync'] as const

/** The management API. Everything under the path needs the key; responses are `{data, error}`. */
export function addManagement(server: Server, parts: ManagementParts): void {
  const { store, keyHashes, wrongKey, baseUrl } = parts
  acceptJson(server, ['application/json'])
  answerErrors(server, parts.log)
  server.addHook('onRequest', async (request, reply) => {
    if (isKeyOf(credential(request, ['api-key', 'bearer']), keyHashes)) return
    await refuseHaste(wrongKey, 'management', '', request, reply)
    throw new HttpError(401, 'The header "Authorization: Api-Key <key>" is missing or its key is wrong.')
  })
  addDirectories(server, parts)
  addPeople(server, store, baseUrl)
  addEvents(server, parts)
  addConsentLinks(server, parts)
  addSyncExternal(server, parts)
  addWebhookLog(server, parts)
  addWebhooks(server, parts)
  addSetupLinks(server, parts)
}

/** Errors as `{data: null, error: {message, code}}`, for known and unknown paths alike. */
export function answerErrors(server: Server, log: Log): void {
  server.setErrorHandler((error, request, reply) => {
    const { status, message } = explain(error)
    if (status >= 500) logFault(log, request, error)
    if (status === 401) reply.header('www-authenticate', wwwAuthenticate)
    if (status === 503) reply.header('retry-after', retryAfter)
    reply.code(status).send({ data: null, error: { message, code: status } })
  })
  server.setNotFoundHandler((_request, reply) => {
    reply.code(404).send({ data: null, error: { message: nothingHere, code: 404 } })
  })
}
