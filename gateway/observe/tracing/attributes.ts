/**
 * Attributes of spans, by OpenTelemetry's semantic conventions for HTTP; nothing that identifies a person or contains a
 * secret.
 */
import type { RequestHead } from '../../message.js'
import type { Finished, Verdict } from '../../verdict.js'
import { methodLabel } from '../labels.js'
import type { Redactor } from '../redact.js'

export type Attributes = Record<string, string | number | string[]>

/** A known method, or `_OTHER`. */
function methodName(method: string): string {
  const label = methodLabel(method)
  return label === 'other' ? '_OTHER' : label
}

/** The name of a span without its route. */
export function spanName(method: string): string {
  const label = methodLabel(method)
  return label === 'other' ? 'HTTP' : label
}

/** Attributes known when the request begins, for samplers. */
export function arrivalAttributes({ id, method, version, peer }: RequestHead): Attributes {
  return {
    'http.request.method': methodName(method),
    'url.scheme': peer.encrypted ? 'https' : 'http',
    'network.protocol.version': version === '2.0' ? '2' : version,
    'sluice.request_id': id,
  }
}

/** Attributes of the whole request, once it has ended. */
export function requestAttributes(event: Finished, redactor: Redactor): Attributes {
  const { facts, project, verdict, status, upstream, bytesIn, bytesOut } = event
  const route = routeOf(event)
  const refusing = refusingRules(verdict)
  return {
    ...(facts && {
      'url.path': pathOf(event, redactor),
      'server.address': facts.host,
    }),
    ...(route !== '' && { 'http.route': route }),
    ...statusAttributes(status, event.error),
    'http.request.body.size': bytesIn,
    'http.response.body.size': bytesOut,
    ...(upstream !== '' && { 'sluice.upstream': upstream }),
    ...(project && {
      'sluice.project': redactor.project(project),
      'sluice.plan': project.plan,
      'sluice.environment': project.environment,
    }),
    ...(refusing.length > 0 && { 'sluice.rule': refusing }),
  }
}

/** Attributes of the request to the upstream. */
export function upstreamAttributes(event: Finished, redactor: Redactor): Attributes {
  const { address, source, status } = event
  const path = pathOf(event, redactor)
  const at = address === '' ? undefined : new URL(address)
  const isTls = at?.protocol === 'https:'
  return {
    'http.request.method': methodName(event.method),
    ...(at && {
      'server.address': at.hostname,
      'server.port': Number(at.port || (isTls ? 443 : 80)),
      'url.full': address + path,
    }),
    ...(source === 'upstream'
      ? statusAttributes(status, event.error)
      : { 'error.type': event.error ?? 'cancelled' }),
    'sluice.upstream': event.upstream,
  }
}

/** The path as the log tells it; '' for a request that was not understood. */
function pathOf(event: Finished, redactor: Redactor): string {
  const { facts } = event
  return facts === undefined ? '' : redactor.path(facts.foldedPath ?? facts.path, routeOf(event))
}

export function decisionAttributes(verdict: Verdict): Attributes {
  const rules = refusingRules(verdict)
  return {
    'sluice.decision': verdict.allowed ? 'allow' : 'deny',
    ...(rules.length > 0 && { 'sluice.rule': rules }),
    'sluice.store': [...new Set(verdict.outcomes.map(({ store }) => store))],
  }
}

/** The path of the matched pattern, a value of low cardinality; '' when no rule matched, or the catch-all. */
export function routeOf({ verdict }: Finished): string {
  const route = verdict?.outcomes[0]?.route ?? ''
  return route.slice(Math.max(0, route.indexOf('/'))).replace(/^\*$/, '')
}

function statusAttributes(status: number, error: string | undefined): Attributes {
  const type = error ?? (status >= 500 ? String(status) : undefined)
  return {
    ...(status > 0 && { 'http.response.status_code': status }),
    ...(type !== undefined && { 'error.type': type }),
  }
}

function refusingRules(verdict: Finished['verdict']): string[] {
  return (verdict?.outcomes ?? []).filter(({ result }) => result !== 'allowed').map(({ rule }) => rule.id)
}
