/** Merges what several processes know of the upstreams and their addresses. */
import type { LiveAddress, LiveUpstream } from '../../admin/live-snapshot.js'
import type { Fault } from '../../forward/backend.js'
import type { BackendState } from '../upstreams.js'

export function joinUpstreams(all: readonly (readonly BackendState[])[]): LiveUpstream[] {
  const backends = mergeBackends(all)
  const names = new Set(backends.map(({ upstream }) => upstream))
  return [...names].map(name =>
    upstreamOf(
      name,
      backends.filter(({ upstream }) => upstream === name),
    ),
  )
}

/** One entry per address: requests are added up; it counts as ejected or unreachable when it is for any worker. */
export function mergeBackends(all: readonly (readonly BackendState[])[]): BackendState[] {
  const merged = new Map<string, BackendState>()
  for (const backend of all.flat()) {
    const address = JSON.stringify([backend.upstream, backend.backend])
    const before = merged.get(address)
    merged.set(address, before === undefined ? backend : together(before, backend))
  }
  return [...merged.values()]
}

function together(one: BackendState, other: BackendState): BackendState {
  const fault = [one.fault, other.fault].filter(known => known !== undefined).sort(bySince)[0]
  return {
    ...one,
    ejected: one.ejected || other.ejected,
    ...(fault && { fault }),
    requests: one.requests + other.requests,
    webSockets: one.webSockets + other.webSockets,
  }
}

const bySince = (one: Fault, other: Fault) => one.since - other.since

function upstreamOf(name: string, backends: readonly BackendState[]): LiveUpstream {
  const addresses = backends.map(addressOf)
  const faults = backends.map(({ fault }) => fault).filter(fault => fault !== undefined)
  if (faults.length < backends.length) return { name, state: 'ok', addresses }
  // Since the last of its addresses has gone.
  const last = faults.sort(bySince).at(-1)
  return { name, state: 'unreachable', ...(last && shown(last)), addresses }
}

function addressOf(backend: BackendState): LiveAddress {
  const { backend: address, requests, webSockets } = backend
  return { address, ...standingOf(backend), in_flight: requests, web_sockets: webSockets }
}

/** Whether an address is ok; if not, why and since when. */
export function standingOf({ ejected, fault }: BackendState): Pick<LiveAddress, 'state' | 'cause' | 'since'> {
  const state = ejected ? 'ejected' : fault === undefined ? 'ok' : 'unreachable'
  return { state, ...(fault && shown(fault)) }
}

function shown({ cause, since }: Fault): { cause: string; since: string } {
  return { cause, since: new Date(since).toISOString() }
}
