/** The live data of the admin port: computed once a second for all watching clients, and not at all without any. */
import type { CertificateState } from '../../acme/keeper.js'
import type { LiveData, LiveListener } from '../../admin/live.js'
import type {
  LiveCertificate,
  LiveChanges,
  LiveOverride,
  LiveProblem,
  LiveSnapshot,
  LiveWorker,
} from '../../admin/live-snapshot.js'
import type { Configuration } from '../../configured/load.js'
import { shownAddress } from '../../decide/redis/address.js'
import { compare } from '../../explain/difference/compare.js'
import { overriddenBy } from '../../explain/difference/overridden.js'
import { sentencesOf } from '../../explain/difference/sentences.js'
import { latestOf } from '../../observe/untrusted-forwarding.js'
import type { Runtime } from '../../overrides/runtime.js'
import type { Log } from '../../types.js'
import type { Host, WorkerState } from '../host.js'
import type { Former, Reloader } from '../reload.js'
import {
  checkKnown,
  countsOf,
  joinClosest,
  joinHistory,
  joinProjects,
  joinRates,
  joinRules,
  joinSlots,
  joinWaiting,
} from './join.js'
import { joinUpstreams } from './join-upstreams.js'
import type { ProcessPart } from './part.js'
import { RUNTIME_ACCESS, rulesOf } from './rules.js'

/** The data of the processes that take requests, and the process ids of those that did not answer. */
export interface AnsweredParts<Part> {
  readonly parts: readonly Part[]
  readonly missing: readonly number[]
}

export interface LiveSources {
  readonly host: Pick<Host, 'live' | 'history' | 'workers' | 'inForce'>
  readonly reloader: Pick<Reloader, 'last' | 'former'>
  /** The configured address of Redis; '' for none. */
  readonly redis: string
  readonly overrides: OverrideFeed
  readonly runtime: Pick<Runtime, 'contents'>
  /** Undefined where no certificate is ordered. */
  readonly certificate?: { readonly state: CertificateState } | undefined
  readonly log: Log
}

/** What was done through the admin port. */
export interface OverrideFeed {
  /** The newest first. */
  list(): readonly LiveOverride[]
  /** Calls `listener` with each later override, by any gateway on the same Redis. */
  watch(listener: (override: LiveOverride) => void): void
}

const SECOND = 1000
/** Newest overrides that are reported besides those that can still be undone. */
const NEWEST_OVERRIDES = 50

export function liveData(sources: LiveSources): LiveData {
  const listeners = new Set<LiveListener>()
  const changes = new Changes()
  /** Number of watching clients, including those waiting for their first snapshot. */
  let watching = 0
  let timer: NodeJS.Timeout | undefined
  let making: Promise<string> | undefined

  /** The snapshot as JSON. Calls during its computation share the result. */
  function make(): Promise<string> {
    making ??= snapshotOf(sources)
      .then(snapshot => JSON.stringify(snapshot))
      .finally(() => {
        making = undefined
      })
    return making
  }
  function tick(): void {
    make().then(json => {
      for (const report of listeners) report('live', json)
    }, failed)
  }
  const failed = (error: unknown) =>
    sources.log.error({ err: error }, 'what happens now could not be reported')
  sources.overrides.watch(override => {
    const json = JSON.stringify(override)
    for (const report of listeners) report('override', json)
  })

  return {
    snapshot: () => snapshotOf(sources),
    async history(of) {
      const { parts } = await sources.host.history(of)
      checkKnown(of, parts, sources.host.inForce.loaded)
      return joinHistory(parts, of)
    },
    overridden() {
      const { loaded } = sources.host.inForce
      return {
        revision: loaded.compiled.policy.revision,
        changes: overriddenBy(loaded, sources.runtime.contents),
      }
    },
    changes: () => changes.between(sources.reloader.former, sources.host.inForce.loaded),
    watch(listener) {
      let watches = true
      watching += 1
      timer ??= setInterval(tick, SECOND)
      make()
        .then(json => {
          if (watches) listener('live', json)
        })
        .catch(failed)
        .finally(() => {
          if (watches) listeners.add(listener)
        })
      return () => {
        watches = false
        watching -= 1
        listeners.delete(listener)
        if (watching > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
  }
}

async function snapshotOf(sources: LiveSources): Promise<LiveSnapshot> {
  const { parts, missing } = await sources.host.live()
  const { workers, inForce } = sources.host
  const { loaded, current, loadedAt } = inForce
  const rules = joinRules(parts)
  const waiting = joinWaiting(parts)
  const upstreams = joinUpstreams(parts.map(({ backends }) => backends))
  const addresses = upstreams.flatMap(one => one.addresses)
  const [only] = parts
  return {
    at: new Date().toISOString(),
    since: new Date(Math.min(...parts.map(({ since }) => since), Date.now())).toISOString(),
    revision: loaded.compiled.policy.revision,
    loaded_at: loadedAt.toISOString(),
    workers: (workers ?? []).map(worker => workerOf(worker, parts)),
    ...(workers === undefined && only && { process: only.process }),
    missing,
    reload: reloadOf(sources.reloader.last),
    store: storeOf(sources.redis, parts),
    ...(sources.certificate && { certificate: certificateOf(sources.certificate.state) }),
    untrusted_forwarding: latestOf(parts.map(part => part.untrusted_forwarding)),
    rates: joinRates(parts),
    in_flight: addresses.reduce((sum, one) => sum + one.in_flight + one.web_sockets, 0),
    rules: [...rulesOf(current), ...(rules.has(RUNTIME_ACCESS.id) ? [RUNTIME_ACCESS] : [])].map(rule => ({
      ...rule,
      ...countsOf(rules, rule.id),
      waiting: waiting.get(rule.id) ?? 0,
    })),
    projects: joinProjects(parts),
    closest: joinClosest(parts),
    slots: joinSlots(parts),
    upstreams,
    overrides: sources.overrides.list().filter(({ undo }, i) => undo || i < NEWEST_OVERRIDES),
  }
}

function workerOf({ pid, startedAt, answers }: WorkerState, parts: readonly ProcessPart[]): LiveWorker {
  const { loop_delay_ms = null, rss_bytes = null } =
    parts.find(part => part.process.pid === pid)?.process ?? {}
  return { pid, started_at: startedAt.toISOString(), answers, loop_delay_ms, rss_bytes }
}

function reloadOf(last: Reloader['last']): LiveSnapshot['reload'] {
  if (last === undefined) return null
  const problems = last.result === 'refused' ? last.problems : []
  return {
    at: last.at.toISOString(),
    result: last.result,
    problems: problems.map(
      ({ file, line, col: column, path, message: sentence }): LiveProblem => ({
        ...{ file, line, column, path, sentence },
      }),
    ),
  }
}

function certificateOf({ domains, expires, failure }: CertificateState): LiveCertificate {
  return { domains, expires: expires?.toISOString() ?? null, failure }
}

/** Away when any of the processes cannot reach it. */
function storeOf(redis: string, parts: readonly ProcessPart[]): LiveSnapshot['store'] {
  const states = parts.map(({ store }) => store)
  const away = states.filter(store => store.away)
  const since = Math.min(...(away.length > 0 ? away : states).map(store => store.since), Date.now())
  return {
    kind: redis === '' ? 'memory' : 'redis',
    address: redis === '' ? null : shownAddress(redis),
    state: away.length > 0 ? 'away' : 'ok',
    since: new Date(since).toISOString(),
  }
}

class Changes {
  #known:
    | { readonly former: Former; readonly loaded: Configuration; readonly changes: LiveChanges }
    | undefined

  /** In the words of `sluice diff`; computed once for each change. Null when nothing was in force before. */
  between(former: Former | undefined, loaded: Configuration): LiveChanges | null {
    if (former === undefined) return null
    if (this.#known?.former !== former || this.#known.loaded !== loaded) {
      const [from, to] = [former.loaded, loaded].map(({ compiled }) => compiled.policy.revision) as [
        string,
        string,
      ]
      const changes = [...sentencesOf(compare(former.loaded, loaded))]
      this.#known = { former, loaded, changes: { from, to, at: former.until.toISOString(), changes } }
    }
    return this.#known.changes
  }
}
