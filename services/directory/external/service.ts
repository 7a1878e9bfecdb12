import type { ServiceLog } from '../../log.js'
import { newSecret, type SecretBox } from '../secrets.js'
import type { Store } from '../store/contract.js'
import type { WriterFactory } from '../sync/writers.js'
import { createCaller } from './call.js'
import { createConnection, type ProviderConnection } from './connection.js'
import { type Consent, createConsent, createStateSigner } from './consent.js'
import { createOAuth } from './oauth.js'
import { createPull } from './pull.js'
import { type Puller, startPuller } from './puller.js'
import type { Bounds, ExternalSettings } from './settings.js'

/** The parts of the external provider that the rest of the service uses. */
export interface ExternalService {
  readonly connection: ProviderConnection
  readonly consent: Consent
  readonly puller: Puller
  /**
   * Where the provider redirects the admin; `baseUrl` is this service's own address, undefined when it is not known.
   */
  redirectUrl(baseUrl: string | undefined): string | undefined
  /** Where a consent starts: on the callback's host, so that the cookie set here is sent there. */
  authorizeUrl(baseUrl: string): string
}

export interface ExternalParts {
  readonly store: Store
  readonly box: SecretBox
  readonly encryptionKey: Buffer
  readonly writers: WriterFactory
  readonly settings: ExternalSettings
  readonly bounds: Bounds
  readonly log: ServiceLog
}

export const oauthPath = '/api/scim/oauth'
const callbackPath = `${oauthPath}/callback`

/** Starts the external provider part; with an interval set, it pulls by itself. */
export function startExternal(parts: ExternalParts): ExternalService {
  const { store, box, encryptionKey, writers, settings, bounds, log } = parts
  const stop = new AbortController()
  const call = createCaller(bounds)
  const oauth = createOAuth(settings, call)
  const states = createStateSigner(encryptionKey)
  const sign = (directoryId: string): string =>
    states.sign({ directoryId, link: newSecret(), browser: newSecret() })
  const connection = createConnection({ store, box, oauth, sign, closing: stop.signal })
  const pull = createPull({ store, writers, connection, call, settings, bounds, log, closing: stop.signal })
  const { intervalMs } = settings
  const puller = startPuller({ store, pull, intervalMs, log, abort: () => stop.abort() })
  return {
    connection,
    consent: createConsent({ store, connection, states }),
    puller,
    redirectUrl: baseUrl =>
      settings.redirectUrl ?? (baseUrl === undefined ? undefined : `${baseUrl}${callbackPath}`),
    authorizeUrl: baseUrl =>
      settings.redirectUrl?.endsWith(callbackPath)
        ? settings.redirectUrl.replace(callbackPath, `${oauthPath}/authorize`)
        : `${baseUrl}${oauthPath}/authorize`,
  }
}
