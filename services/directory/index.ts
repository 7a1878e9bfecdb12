/** The package's `./directory`: the embedded directory service, by HTTP and as a library. */
import { type CountWrongKey, countWrongKeys } from '../http/wrong-keys.js'
import { hashKey } from '../keys.js'
import type { ServiceLog } from '../log.js'
import { type DirectoryCore, openCore } from './core.js'
import { oauthPath } from './external/service.js'
import { type EmbeddedDirectory, embed } from './library/embedded.js'
import { addApiDocument } from './routes/api-document.js'
import { addConsent } from './routes/consent.js'
import { createServer, type KeyArea, type Server } from './routes/http.js'
import { addManagement, answerManagementErrors, managementPaths } from './routes/management.js'
import { addScim, scimPath } from './routes/scim.js'
import { setupPath } from './routes/setup-links.js'
import { addSetupPage } from './routes/setup-page.js'
import { managementKey } from './secrets.js'
import { readSettings, type Settings } from './settings.js'
import { createIntake } from './sync/intake.js'

export type { ServiceLog as Log } from '../log.js'
export type { EventCallback } from './events/event.js'
export type { TokenSet } from './external/oauth.js'
export type { LibraryAnswer as Answer, Listed } from './library/calls.js'
export type { EmbeddedDirectory, SyncResult } from './library/embedded.js'
export type { DirectoryRequest, DirectoryResponse } from './library/handler.js'
export type { Feed, Management } from './library/management.js'
export { type KeyRotation as Rotation, rotateKeys } from './rotate-keys.js'
export type { Paging, Where } from './routes/describe.js'
export type {
  ConsentLinkView,
  DirectoryChange,
  DirectoryView,
  NewConsentLink,
  NewDirectory,
  NewSetupLinkView,
  PullView,
  SecretRotation,
  SetupLinkView,
} from './schemas/directory.js'
export type {
  DeadLetterView,
  DirectoryEvent,
  Replayed,
  Started,
  WebhookEventView,
} from './schemas/events.js'
export type { Refusal } from './schemas/parts.js'
export type { FullGroupView, GroupView, MemberView, UserView } from './schemas/people.js'
export type { ListedWebhook, NewWebhook, WebhookChange, WebhookTrial } from './schemas/webhooks.js'

/** The running service. `notes` are lines the operator must see at this start. */
export interface DirectoryService extends EmbeddedDirectory {
  readonly url: string
  readonly notes: string[]
  /** The series `directory_*` in the Prometheus text format. */
  metrics(): Promise<string>
  /** A sentence while the database is failing. */
  trouble(): string | undefined
}

/** Where the service takes its settings from (DATA_DIR, MONGODB_URL and so on), and where it writes its log. */
export interface OpenOptions {
  readonly env: NodeJS.ProcessEnv
  readonly log: ServiceLog
}

interface DirectoryStartOptions extends OpenOptions {
  /** Counts wrong keys; by default within this process. */
  readonly wrongKey?: CountWrongKey<KeyArea>
  /**
   * Of the gateway in front, which sends it in `x-sluice-secret`: only requests with it are answered, and what they say
   * in `x-sluice-*` fields is believed. Without it everybody is answered, and those fields are ignored.
   */
  readonly gatewaySecret?: string
  /** By default a free port of this machine's loopback, for a gateway in the same process. */
  readonly listen?: { readonly host: string; readonly port: number }
}

export type { DirectoryStartOptions as StartOptions }

/**
 * Opens the service within this process, without a listener, for callers that pass SCIM requests on themselves. Throws
 * an Error with a sentence for the operator when a setting or the database is unusable.
 */
export async function open(options: OpenOptions): Promise<EmbeddedDirectory> {
  return embed(await openCore(options))
}

/**
 * Starts the directory service. It runs behind the gateway and knows nothing of rate limits. Throws an Error with a
 * sentence for the operator when a setting or the database is unusable.
 */
export async function start(options: DirectoryStartOptions): Promise<DirectoryService> {
  const core = await openCore(options)
  try {
    const keyHashes: Buffer[] = []
    const server = createServer(options.gatewaySecret)
    core.closers.push(() => server.close())
    addRoutes(server, core, keyHashes, options.wrongKey ?? countWrongKeys(core.log))
    const url = await server.listen(options.listen ?? { host: '127.0.0.1', port: 0 })
    // Last: a key is shown only once, so it is made when nothing else can fail.
    const { hashes, notes } = managementKeys(core.settings)
    keyHashes.push(...hashes)
    const metrics = core.metrics.text
    return { ...embed(core), url, notes, metrics, trouble: core.health.trouble }
  } catch (error) {
    await core.close()
    throw error
  }
}

/** Throws as `start` would when a setting is invalid, without opening the data folder or the database. */
export async function checkSettings(env: NodeJS.ProcessEnv): Promise<void> {
  readSettings(env)
}

function addRoutes(
  server: Server,
  core: DirectoryCore,
  keyHashes: readonly Buffer[],
  wrongKey: CountWrongKey<KeyArea>,
): void {
  const { store, settings, writers } = core
  const { baseUrl } = settings
  const parts = { ...core, baseUrl, keyHashes, wrongKey }
  answerManagementErrors(server, core.log)
  addApiDocument(server, managementPaths[1], baseUrl)
  for (const prefix of managementPaths) {
    server.register(async scope => addManagement(scope, parts), { prefix })
  }
  const { users, groups } = writers()
  const intake = createIntake(store, users, groups, core.searches)
  server.register(async scope => addScim(scope, parts, intake), { prefix: scimPath })
  server.register(async scope => addConsent(scope, parts), { prefix: oauthPath })
  server.register(async scope => addSetupPage(scope, parts), { prefix: setupPath })
}

function managementKeys({ apiKeys, dataDir }: Settings): { hashes: Buffer[]; notes: string[] } {
  if (apiKeys.length > 0) return { hashes: apiKeys.map(hashKey), notes: [] }
  const { hash, made, file } = managementKey(dataDir)
  if (made === undefined) return { hashes: [hash], notes: [] }
  return {
    hashes: [hash],
    notes: [`Management API key (shown once): ${made}`, `To get a new one, delete ${file} and start again.`],
  }
}
