import type { ServiceLog } from '../../log.js'
import type { EventCallback } from '../events/event.js'
import { keepLease, leaseMs } from '../events/lease.js'
import type { Directory } from '../model.js'
import type { DirectoryEvent } from '../schemas/events.js'
import type { PullCounts, PullState, Store } from '../store/contract.js'
import type { StoredEvent } from '../store/event-contract.js'
import type { WriterFactory } from '../sync/writers.js'
import { apply } from './apply.js'
import type { CallProvider } from './call.js'
import type { Work } from './compare.js'
import { compare } from './compare.js'
import type { ProviderConnection } from './connection.js'
import { createProvider } from './provider.js'
import { readProvider } from './read.js'
import type { Bounds, ExternalSettings } from './settings.js'

export interface PullOptions {
  /** Pulls only if no pull began after this time (epoch ms). */
  readonly idleSince?: number
  /** Lifts the limit on deletions for this pull. */
  readonly allowDeletions?: boolean
  readonly callback?: EventCallback | undefined
}

export interface PullParts {
  readonly store: Store
  readonly writers: WriterFactory
  readonly connection: ProviderConnection
  readonly call: CallProvider
  readonly settings: Pick<ExternalSettings, 'apiUrl' | 'maxDeletions'>
  readonly bounds: Bounds
  readonly log: ServiceLog
  readonly closing: AbortSignal
}

/**
 * Pulls one directory. Undefined when there is nothing to do: deactivated, not connected, not due, or being pulled by
 * another process.
 */
export type Pull = (directoryId: string, options: PullOptions) => Promise<PullState | undefined>

/**
 * A pull reads the provider, compares, and then writes the differences as SCIM would. Nothing is deleted when the read
 * was incomplete, or when more would go than the guard allows. Failures end up in the directory's state, not in an
 * exception.
 */
export function createPull(parts: PullParts): Pull {
  const { store, writers, connection, call, settings, bounds, log, closing } = parts

  async function work(
    directory: Directory,
    { allowDeletions = false, callback }: PullOptions,
    listen: Listener,
    requireLease: () => void,
    before: PullState['usersFrom'],
  ): Promise<Pick<PullState, 'outcome' | 'problem' | 'usersFrom'>> {
    const signal = AbortSignal.any([closing, AbortSignal.timeout(bounds.readMs)])
    const token = connection.accessToken(directory, signal)
    const domain = directory.external?.domain ?? ''
    const provider = createProvider({ call, bounds, token, apiUrl: settings.apiUrl, domain, signal })
    // Users that were read with their names must not be replaced by mere members because of a fault at the provider.
    const membersSuffice = before !== 'users' || allowDeletions
    const snapshot = await readProvider(provider, { bounds, domain, membersSuffice })
    const usersFrom = snapshot.usersFrom ?? before
    const difference = await compare(store, directory, snapshot)
    const isWhole = snapshot.problems.length === 0
    const refused = isWhole && !allowDeletions ? refusal(difference, settings.maxDeletions) : undefined
    const written = async (): Promise<void> => {
      await listen.passOn()
      requireLease()
    }
    // Written one by one, so that a callback that throws does not miss events of changes already stored.
    const atOnce = callback ? 1 : writtenAtOnce
    const target = { directory, writers: writers(listen.hear), atOnce, written }
    const undone = await apply(target, difference, snapshot, isWhole && refused === undefined)
    const problems = [...snapshot.problems, ...(refused ? [refused] : []), ...undone]
    if (problems.length === 0) return { outcome: 'complete', problem: null, usersFrom }
    const problem = summary(
      isWhole ? problems : [...problems, 'Nothing was deleted, because not everything could be read'],
    )
    const isEmpty = !isWhole && snapshot.users.size === 0
    return { outcome: refused ? 'refused' : isEmpty ? 'failed' : 'incomplete', problem, usersFrom }
  }

  return async (directoryId, options) => {
    const directory = await store.directory(directoryId)
    if (!directory?.external?.tokens || directory.deactivated) return undefined
    const last = (await store.pullStates([directoryId])).get(directoryId)?.state
    const now = Date.now()
    const until = now + leaseMs
    const fence = await store.claimPull(directoryId, { now, until, idleSince: options.idleSince })
    if (fence === undefined) return undefined

    const listen = createListener(options.callback)
    const started = new Date(now).toISOString()
    const before = last?.usersFrom ?? null
    let end: Pick<PullState, 'outcome' | 'finished' | 'problem' | 'usersFrom'> = {
      ...{ outcome: 'running', finished: null, problem: null, usersFrom: before },
    }
    const state = (): PullState => ({ ...end, started, counts: listen.counts() })
    if (!(await store.reportPull(directoryId, fence, { until, state: state() }))) return undefined
    const lease = keepLease(until => store.reportPull(directoryId, fence, { until, state: state() }))
    const requireLease = (): void => {
      closing.throwIfAborted()
      if (!lease.held()) throw new Error('Another process has taken over this pull')
    }
    try {
      const { outcome, problem, usersFrom } = await work(directory, options, listen, requireLease, before)
      end = { outcome, problem, usersFrom, finished: new Date().toISOString() }
    } catch (error) {
      const problem = closing.aborted ? 'The service was stopped during the pull' : (error as Error).message
      end = { outcome: 'failed', problem, usersFrom: before, finished: new Date().toISOString() }
    } finally {
      lease.stop()
    }
    const { outcome, problem, usersFrom } = end
    const fields = { directory: directoryId, outcome, problem, usersFrom, ...listen.counts() }
    if (problem === null) log.info(fields, 'external directory pulled')
    else log.warn(fields, 'external directory not pulled completely')
    await lease.end(true)
    return state()
  }
}

const writtenAtOnce = 20
const longestSummary = 5

function summary(problems: readonly string[]): string {
  const passOn = problems.slice(0, longestSummary).join('. ')
  const more = problems.length - longestSummary
  return more > 0 ? `${passOn}. And ${more} more problems.` : `${passOn}.`
}

interface Listener {
  readonly hear: (directory: Directory, events: readonly StoredEvent[]) => void
  /** Hands the events heard so far to the callback. */
  passOn(): Promise<void>
  counts(): PullCounts
}

/** Counts the events, and keeps them until the callback has received them. */
function createListener(callback: EventCallback | undefined): Listener {
  const seen: Record<string, number> = {}
  let waiting: DirectoryEvent[] = []
  const of = (type: 'user' | 'group'): PullCounts['users'] => ({
    created: seen[`${type}.created`] ?? 0,
    updated: seen[`${type}.updated`] ?? 0,
    deleted: seen[`${type}.deleted`] ?? 0,
  })
  return {
    hear(_directory, events) {
      for (const { body } of events) {
        const event = JSON.parse(body) as DirectoryEvent
        seen[event.event] = (seen[event.event] ?? 0) + 1
        if (callback) waiting.push(event)
      }
    },
    async passOn() {
      const events = waiting
      waiting = []
      try {
        for (const event of events) await callback?.(event)
      } catch (error) {
        throw new Error(`The callback threw: ${error instanceof Error ? error.message : String(error)}`)
      }
    },
    counts: () => ({
      users: of('user'),
      groups: of('group'),
      memberships: { added: seen['group.user_added'] ?? 0, removed: seen['group.user_removed'] ?? 0 },
    }),
  }
}

/** Up to these numbers deletions pass: in a small directory every single one is a large share. */
const always = { users: 1, groups: 1, memberships: 10 }

/**
 * Why a pull must delete nothing, or undefined. An empty list of users, or the loss of more than `share` (0 to 1) of
 * the users, groups or memberships at once, is more likely a fault at the provider than intended.
 */
function refusal(work: Work, share: number): string | undefined {
  const { users, groups, moves, memberships } = work
  const leaving = [...moves.values()].reduce((sum, move) => sum + move.leaving.length, 0)
  const losses = [
    { name: 'users', going: users.gone.length, all: users.gone.length + users.ids.size },
    { name: 'groups', going: groups.gone.length, all: groups.gone.length + groups.ids.size },
    { name: 'memberships', going: leaving, all: memberships },
  ] as const
  const reasons = losses
    .filter(
      ({ name, going, all }) =>
        going > all * share && (going > always[name] || (going === all && name === 'users')),
    )
    .map(({ name, going, all }) => `${going} of ${all} ${name}`)
  if (reasons.length === 0) return undefined
  return `Nothing was deleted: ${reasons.join(' and ')} would be deleted, more than ${Math.round(share * 100)} % at once; if that is intended, pull once with allowDeletions=true`
}
