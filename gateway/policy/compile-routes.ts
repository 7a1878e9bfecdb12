/** Compiles `routes` of gateway.yaml. */
import type { PolicyConfig } from './documents.js'
import { type Fault, readPattern } from './fault.js'
import type { Pattern } from './pattern.js'
import { Routes } from './routes.js'
import { extentOf, sampleRequestsOf } from './sample-requests.js'
import { listTakers, takersOf } from './takers.js'
import type { UpstreamReading } from './upstream-reading.js'

interface Written {
  readonly host: string | undefined
  readonly pattern: Pattern
  readonly path: Fault['path']
}

/** @param readings how upstreams interpret requests, by name, where that matters */
export function compileRoutes(
  { gateway, gatewayFile: file }: PolicyConfig,
  readings: ReadonlyMap<string, UpstreamReading>,
  faults: Fault[],
): Routes {
  const compiled = new Routes(gateway.closed, readings)
  const added: Written[] = []
  for (const [i, { host, path: text, ...target }] of gateway.routes.entries()) {
    const path = ['routes', i, 'path']
    const pattern = readPattern(text, file, path, faults)
    if (pattern === undefined) continue
    const tie = compiled.add(host, pattern, target)
    if (tie === undefined) added.push({ host, pattern, path })
    else {
      const message = `The path "${text}" ties with "${tie.route}", which is routed already.`
      faults.push({ file, path, message })
    }
  }
  for (const { path, message } of shadowed(added, compiled)) faults.push({ file, path, message })
  return compiled
}

/** Routes whose every request is taken by others of the same host. */
function shadowed(written: readonly Written[], routes: Routes): Omit<Fault, 'file'>[] {
  const extent = extentOf(written.map(({ pattern }) => pattern))
  return written.flatMap(({ host, pattern, path }) => {
    const takers = takersOf(sampleRequestsOf(pattern, extent), routes.of(host), pattern)
    if (takers === undefined) return []
    const message = `No request can take the route "${pattern.text}": ${listTakers(takers)} more specific.`
    return { path, message }
  })
}
