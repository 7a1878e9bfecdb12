/** Compiles `routes` of gateway.yaml. */
import type { Route, RouteChanges, RouteTimeouts } from '../route.js'
import { compileCors, preflightAnswer } from './cors.js'
import type { PolicyConfig } from './documents.js'
import { type Fault, type FaultHere, readPattern } from './fault.js'
import { compileRewrite } from './path-rewrite.js'
import type { Pattern } from './pattern.js'
import { compileQuotaPath } from './quota-path.js'
import { compileAnswer } from './route-answer.js'
import { compileRequestFields, compileResponseFields } from './route-fields.js'
import { Routes } from './routes.js'
import { extentOf, sampleRequestsOf } from './sample-requests.js'
import { compileSplit } from './split.js'
import { listTakers, takersOf } from './takers.js'
import type { UpstreamReading } from './upstream-reading.js'

type WrittenRoute = PolicyConfig['gateway']['routes'][number]

interface Written {
  readonly host: string | undefined
  readonly pattern: Pattern
  readonly path: Fault['path']
}

/** @param readings how upstreams interpret requests, by name, where that matters */
export function compileRoutes(
  config: PolicyConfig,
  readings: ReadonlyMap<string, UpstreamReading>,
  faults: Fault[],
): Routes {
  const { gateway, gatewayFile: file } = config
  const quotaPath = compileQuotaPath(config, readings, faults)
  const compiled = new Routes(gateway.closed, readings, quotaPath)
  const added: Written[] = []
  for (const [i, written] of gateway.routes.entries()) {
    const { host, path: text } = written
    const path = ['routes', i, 'path']
    const pattern = readPattern(text, file, path, faults)
    if (pattern === undefined) continue
    if (quotaPath?.isOf(pattern)) {
      const message = `No request can take the route "${text}": the gateway answers it, because quotaPath names the same path. Remove one of the two.`
      faults.push({ file, path, message })
    }
    const own: FaultHere[] = []
    const tie = compiled.add(host, pattern, compileRoute(written, pattern, readings, own))
    for (const { path: at, message } of own) faults.push({ file, path: ['routes', i, ...at], message })
    if (tie === undefined) added.push({ host, pattern, path })
    else {
      const message = `The path "${text}" ties with "${tie.route}", which is routed already.`
      faults.push({ file, path, message })
    }
  }
  for (const { path, message } of shadowed(added, compiled)) faults.push({ file, path, message })
  const closing = quotaPath === undefined ? -1 : compiled.closing(quotaPath.path)
  if (closing >= 0) {
    const message = `This closes quotaPath: every call of "${quotaPath?.path}" would be answered 404. Narrow it, or choose another quotaPath.`
    faults.push({ file, path: ['closed', closing], message })
  }
  return compiled
}

function compileRoute(
  written: WrittenRoute,
  pattern: Pattern,
  readings: ReadonlyMap<string, UpstreamReading>,
  faults: FaultHere[],
): Route {
  const { upstream, auth, scopes, headers = {} } = written
  const split = compileSplit(written.split, readings, faults)
  const answer = compileAnswer(written, faults)
  const path = compileRewrite(written, pattern, faults)
  const fields = compileRequestFields(headers.request)
  const responseFields = compileResponseFields(headers.response)
  const cors = written.cors && compileCors(written.cors, faults)
  const preflight: Route | undefined = written.cors &&
    cors && {
      upstream: undefined,
      isPreflight: true,
      answer: preflightAnswer(written.cors, cors),
      auth: 'optional',
      scopes: [],
      cors,
      responseFields,
    }
  return {
    upstream: split === undefined ? upstream : split.upstreams[0],
    split,
    answer,
    auth,
    scopes,
    changes: changesOf({ path, fields, timeouts: timeoutsOf(written.timeouts), maxBody: written.maxBody }),
    cors,
    preflight,
    responseFields,
  }
}

/** Undefined if nothing changes, as for most routes. */
function changesOf(changes: RouteChanges): RouteChanges | undefined {
  return Object.values(changes).every(change => change === undefined) ? undefined : changes
}

/** Without the keys that are not written: what they would hold would replace the upstream's. */
function timeoutsOf(written: WrittenRoute['timeouts']): RouteTimeouts | undefined {
  if (written === undefined) return undefined
  return Object.fromEntries(Object.entries(written).map(([name, ms]) => [`${name}Ms`, ms]))
}

/** Routes whose every request is taken by others of the same host. */
function shadowed(written: readonly Written[], routes: Routes): FaultHere[] {
  const extent = extentOf(written.map(({ pattern }) => pattern))
  return written.flatMap(({ host, pattern, path }) => {
    const takers = takersOf(sampleRequestsOf(pattern, extent), routes.of(host), pattern)
    if (takers === undefined) return []
    const message = `No request can take the route "${pattern.text}": ${listTakers(takers)} more specific.`
    return { path, message }
  })
}
