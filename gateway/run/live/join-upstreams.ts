/** Merges what several processes know of the upstreams and their addresses. */
import type { LiveAddress, LiveUpstream } from '../../admin/live-snapshot.js'
import type { Fault } from '../../forward/standing.js'
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
  const [fault] = inOrder([one.fault, other.fault])
  const [unhealthy] = inOrder([one.unhealthy, other.unhealthy])
  const [nameFault] = inOrder([one.nameFault, other.nameFault])
  return {
    ...one,
    ejected: one.ejected || other.ejected,
    ...(fault && { fault }),
    ...(unhealthy && { unhealthy }),
    ...(nameFault && { nameFault }),
    isLeaving: one.isLeaving === true && other.isLeaving === true,
    requests: one.requests + other.requests,
    webSockets: one.webSockets + other.webSockets,
  }
}

/** The oldest first. */
function inOrder(faults: readonly (Fault | undefined)[]): Fault[] {
  return faults.filter(fault => fault !== undefined).sort((one, other) => one.since - other.since)
}

function upstreamOf(name: string, backends: readonly BackendState[]): LiveUpstream {
  const addresses = backends.map(addressOf)
  const used = backends.filter(({ isLeaving }) => !isLeaving)
  const faults = inOrder(used.map(faultOf))
  if (faults.length < used.length) return { name, state: 'ok', addresses }
  const state = used.every(({ fault }) => fault !== undefined) ? 'unreachable' : 'unhealthy'
  // Since the last of its addresses has gone.
  const last = faults.at(-1)
  return { name, state, ...(last && shown(last)), addresses }
}

function addressOf(backend: BackendState): LiveAddress {
  const { backend: address, requests, webSockets } = backend
  return { address, ...standingOf(backend), in_flight: requests, web_sockets: webSockets }
}

/** Whether an address is ok; if not, why and since when. */
export function standingOf(
  backend: BackendState,
): Pick<LiveAddress, 'state' | 'cause' | 'since' | 'name_fault'> {
  const fault = faultOf(backend)
  const { nameFault } = backend
  return {
    state: stateOf(backend),
    ...(fault && shown(fault)),
    ...(nameFault && { name_fault: shown(nameFault) }),
  }
}

function stateOf({ ejected, unhealthy, fault, isLeaving }: BackendState): LiveAddress['state'] {
  if (isLeaving) return 'draining'
  if (ejected) return 'ejected'
  if (fault !== undefined) return 'unreachable'
  return unhealthy === undefined ? 'ok' : 'unhealthy'
}

/** That it cannot be reached says more than that it fails its checks. */
const faultOf = ({ fault, unhealthy }: BackendState): Fault | undefined => fault ?? unhealthy

function shown({ cause, since }: Fault): { cause: string; since: string } {
  return { cause, since: new Date(since).toISOString() }
}
