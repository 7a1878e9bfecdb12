/** Pulls with short timeouts, without HTTP on our side. */
import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { PullOptions } from '../../../../services/directory/external/pull.js'
import type { Pulled } from '../../../../services/directory/external/puller.js'
import { startExternal } from '../../../../services/directory/external/service.js'
import {
  type Bounds,
  bounds,
  readExternalSettings,
} from '../../../../services/directory/external/settings.js'
import type { Directory } from '../../../../services/directory/model.js'
import type { DirectoryEvent } from '../../../../services/directory/schemas/events.js'
import { createSecretBox } from '../../../../services/directory/secrets.js'
import type { PullState, Store } from '../../../../services/directory/store/contract.js'
import { openSqlite } from '../../../../services/directory/store/sqlite/store.js'
import { allMembers } from '../../../../services/directory/sync/members.js'
import { createWriters } from '../../../../services/directory/sync/writers.js'
import { waitUntil } from '../../../helpers/wait.js'
import { type StandIn, startProvider } from './provider.js'

export interface Pulling {
  readonly countLocally: StandIn
  readonly store: Store
  readonly events: DirectoryEvent[]
  readonly logged: string[]
  /** A connected directory. */
  connect(): Promise<Directory>
  pullAll(): Promise<Pulled[]>
  /** Pulls one directory as endpoint 9 does, and returns the resulting state. */
  pull(directory: Directory, wish?: PullOptions): Promise<PullState>
  begin(directory: Directory, wish?: PullOptions): Promise<void>
  state(directory: Directory): Promise<PullState | undefined>
  /** userNames, with `-` before inactive ones, and the members' userNames of each group. */
  held(directory: Directory): Promise<{ users: string[]; groups: Record<string, string[]> }>
  /** The events since the last call, abbreviated. */
  news(): string[]
  close(): Promise<void>
}

const hasty: Bounds = { ...bounds, answerMs: 300, attempts: 3, firstWaitMs: 5, longestWaitMs: 1500 }

export interface PullingOptions {
  readonly store?: Store
  readonly countLocally?: StandIn
  readonly bounds?: Partial<Bounds>
  readonly env?: NodeJS.ProcessEnv
  readonly key?: Buffer
}

export async function startPulling(t: Test, options: PullingOptions = {}): Promise<Pulling> {
  const countLocally = options.countLocally ?? (await startProvider(t))
  const store = options.store ?? openSqlite(join(t.testdir(), 'directory.db'))
  const encryptionKey = options.key ?? randomBytes(32)
  const box = createSecretBox([encryptionKey])
  const logged: string[] = []
  const write = (fields: object, message: string): void => {
    logged.push(`${message} ${JSON.stringify(fields)}`)
  }
  const log = { debug: write, info: write, warn: write, error: write }
  const settings = readExternalSettings({ ...countLocally.env, ...options.env })
  const writers = createWriters(store, log, () => undefined)
  const patience = { ...hasty, ...options.bounds }
  const { connection, puller } = startExternal({
    store,
    box,
    encryptionKey,
    writers,
    settings,
    bounds: patience,
    log,
  })
  let open = true
  const close = async (): Promise<void> => {
    if (!open) return
    open = false
    await puller.close()
    if (!options.store) await store.close()
  }
  t.teardown(close)
  const events: DirectoryEvent[] = []
  const callback = (event: DirectoryEvent): void => {
    events.push(event)
  }
  let told = 0
  const state = async ({ id }: Directory) => (await store.pullStates([id])).get(id)?.state
  const begin = (directory: Directory, wish: PullOptions = {}) =>
    puller.begin(directory.id, { callback, ...wish })

  return {
    countLocally,
    store,
    events,
    logged,
    begin,
    state,
    close,
    async connect() {
      const id = randomUUID()
      const directory: Directory = {
        ...{ id, name: 'Test', tenant: randomUUID(), product: 'app', type: 'external', deactivated: false },
        ...{ logWebhookEvents: false, scimSecret: box.seal('secret', id, 'scim'), webhook: undefined },
        external: { domain: 'acme.example' },
        created: new Date().toISOString(),
      }
      await store.createDirectory(directory)
      const tokens = await connection.exchange(id, 'good-code', 'http://127.0.0.1/callback')
      const { access_token: access, refresh_token: refresh, expiry_date: expires } = tokens
      return connection.store(id, { access, refresh, expires })
    },
    pullAll: () => puller.pullAll(callback),
    async pull(directory, wish) {
      const before = (await state(directory))?.started
      await new Promise(resolve => setTimeout(resolve, 2))
      await begin(directory, wish)
      return waitUntil('the pull is over', async () => {
        const now = await state(directory)
        return now?.finished && now.started !== before ? now : undefined
      })
    },
    async held({ id }) {
      const page = { offset: 0, limit: 10_000 }
      const users = await store.resources({ directoryId: id }, 'user', page)
      const names = new Map(
        users.map(({ id, raw }) => [id, String(raw.userName).replace(/@acme.example$/, '')]),
      )
      const groups: Record<string, string[]> = {}
      for (const group of await store.resources({ directoryId: id }, 'group', page)) {
        const members = await allMembers(store, group.id)
        groups[String(group.raw.displayName)] = members.map(({ userId }) => names.get(userId) ?? '?').sort()
      }
      const shown = users.map(({ id, raw }) => `${raw.active === false ? '-' : ''}${names.get(id)}`)
      return { users: shown.sort(), groups }
    },
    news() {
      const fresh = events.slice(told)
      told = events.length
      return fresh.map(({ event, data }) => {
        const { raw, group } = data as {
          raw: { userName?: string; displayName?: string }
          group?: { name: string }
        }
        const name = (raw.userName ?? raw.displayName ?? '').replace(/@acme.example$/, '')
        return group ? `${event} ${group.name} ${name}` : `${event} ${name}`
      })
    },
  }
}
