/** Compiles `cors` of a route (Fetch standard, section 3.3). Pure. */
import type { Cors, RouteAnswer } from '../route.js'
import type { FaultHere } from './fault.js'
import { isServedMethod } from './pattern.js'

export interface WrittenCors {
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly expose: readonly string[]
  readonly credentials: boolean
  /** In ms. */
  readonly maxAge?: number | undefined
}

const ANY = '*'
const ALLOW_ORIGIN = 'access-control-allow-origin'
const NONE: readonly string[] = []
/** What an upstream says of its own about other origins: there must be one voice. */
const OF_UPSTREAM = [
  ALLOW_ORIGIN,
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-expose-headers',
  'access-control-max-age',
]

/** As `cors: echo`: every page may read, none with the browser's credentials. */
export const anyOrigin: Cors = {
  fieldsFor: origin => (origin === undefined ? NONE : [ALLOW_ORIGIN, origin]),
  added: ['vary', 'Origin'],
  removed: OF_UPSTREAM,
}

export function compileCors(written: WrittenCors, faults: FaultHere[]): Cors {
  for (const fault of faultsOf(written)) faults.push({ ...fault, path: ['cors', ...fault.path] })
  const { origins, expose, credentials } = written
  const forPages = [
    ...(credentials ? ['access-control-allow-credentials', 'true'] : []),
    ...(expose.length > 0 ? ['access-control-expose-headers', expose.join(', ')] : []),
  ]
  if (origins.includes(ANY)) {
    const fields = [ALLOW_ORIGIN, ANY, ...forPages]
    return { fieldsFor: () => fields, added: NONE, removed: OF_UPSTREAM }
  }
  const byOrigin = new Map(origins.map(origin => [origin, [ALLOW_ORIGIN, origin, ...forPages]]))
  return {
    fieldsFor: origin => (origin === undefined ? NONE : (byOrigin.get(origin) ?? NONE)),
    // In every response: a cache must not give one page what was meant for another, or for none.
    added: ['vary', 'Origin'],
    removed: OF_UPSTREAM,
  }
}

/** The response to a preflight, besides the fields of every response. */
export function preflightAnswer(
  { methods, headers, maxAge }: Pick<WrittenCors, 'methods' | 'headers' | 'maxAge'>,
  cors: Cors,
): RouteAnswer {
  const vary = ['vary', 'Access-Control-Request-Method, Access-Control-Request-Headers']
  const allowed = [
    ...(methods.length > 0 ? ['access-control-allow-methods', methods.join(', ')] : []),
    ...(headers.length > 0 ? ['access-control-allow-headers', headers.join(', ')] : []),
    ...(maxAge === undefined ? [] : ['access-control-max-age', String(maxAge / 1000)]),
  ]
  const isAllowed = (origin: string | undefined) => cors.fieldsFor(origin).length > 0
  return {
    status: 204,
    fieldsFor: facts => (isAllowed(facts.header('origin')) ? [...allowed, ...vary] : [...vary]),
    body: Buffer.alloc(0),
  }
}

function faultsOf({ origins, methods, headers, expose, credentials }: WrittenCors): FaultHere[] {
  const faults: FaultHere[] = []
  for (const [i, origin] of origins.entries()) {
    const message = originFault(origin, origins.length)
    if (message !== undefined) faults.push({ path: ['origins', i], message })
  }
  for (const [i, method] of methods.entries()) {
    if (isServedMethod(method)) continue
    faults.push({ path: ['methods', i], message: `No request is served with ${method}.` })
  }
  if (!credentials) return faults
  for (const [key, names] of Object.entries({ origins, headers, expose })) {
    const at = names.indexOf(ANY)
    if (at === -1) continue
    const message = `"*" must not be combined with credentials: every page could act as its visitor. Name the ${key === 'origins' ? key : 'headers'}.`
    faults.push({ path: [key, at], message })
  }
  return faults
}

/** Origins are compared as text, so they must be written as browsers send them. */
function originFault(origin: string, count: number): string | undefined {
  if (origin === ANY) return count === 1 ? undefined : '"*" stands for every origin. Write it alone.'
  if (!/^https?:/.test(origin)) return undefined
  const sent = URL.canParse(origin) ? new URL(origin).origin : undefined
  if (sent === origin) return undefined
  return sent === undefined
    ? `"${origin}" is not an origin.`
    : `No browser sends the origin "${origin}". Write "${sent}".`
}
