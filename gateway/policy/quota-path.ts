/** Compiles `quotaPath` of gateway.yaml: a route at which the gateway tells callers their own windows. Pure. */
import { PROJECT_LIMITS } from '../../config/words/bucket.js'
import { compiledRule } from '../compiled-rule.js'
import { GatewayError } from '../errors.js'
import type { Route, RouteAnswer } from '../route.js'
import type { Matched } from '../types.js'
import { anyOrigin, preflightAnswer } from './cors.js'
import { type PolicyConfig, sourceIn } from './documents.js'
import { type Fault, readPattern } from './fault.js'
import type { Pattern } from './pattern.js'
import { segmentsOf } from './trie.js'
import { ownReading, type UpstreamReading } from './upstream-reading.js'

/** The rule that counts calls. No bucket can have this name, because those are in lowercase. */
const RULE = 'quotaPath'
const METHODS = ['GET', 'HEAD']
/** `*` does not stand for Authorization (Fetch standard, section 3.3.4). */
const HEADERS = ['*', 'Authorization']
const NO_RULES: readonly Matched[] = []

export class QuotaPath {
  /** In normal form. */
  readonly path: string
  readonly route: Route
  readonly #ignoresCase: boolean
  readonly #segments: readonly string[]

  /** @param ignoresCase true if an upstream does: what the gateway answers must not be reached there by another spelling */
  constructor({ segments }: Pattern, route: Route, ignoresCase: boolean) {
    this.path = `/${literals(segments).join('/')}`
    this.route = route
    this.#ignoresCase = ignoresCase
    this.#segments = literals(segments).map(text => this.#folded(text))
  }

  /** Compares as patterns do: a trailing slash is ignored. */
  isAt(path: string): boolean {
    return this.#isSame(segmentsOf(path))
  }

  /** True for a pattern of this path alone, with any method. */
  isOf({ segments }: Pattern): boolean {
    return segments.every(({ kind }) => kind === 'literal') && this.#isSame(literals(segments))
  }

  #isSame(segments: readonly string[]): boolean {
    if (segments.length !== this.#segments.length) return false
    return segments.every((segment, i) => this.#folded(segment) === this.#segments[i])
  }

  #folded(text: string): string {
    return this.#ignoresCase ? text.toLowerCase() : text
  }
}

function literals(segments: Pattern['segments']): string[] {
  return segments.map(segment => (segment.kind === 'literal' ? segment.text : ''))
}

/**
 * Undefined if the setting is absent or invalid.
 *
 * @param readings how upstreams interpret requests, by name, where that matters
 */
export function compileQuotaPath(
  config: PolicyConfig,
  readings: ReadonlyMap<string, UpstreamReading>,
  faults: Fault[],
): QuotaPath | undefined {
  const { gateway, gatewayFile: file } = config
  const text = gateway.quotaPath
  const pattern = text === undefined ? undefined : readPattern(text, file, ['quotaPath'], faults)
  if (text === undefined || pattern === undefined) return undefined
  const ignoresCase = ownReading(readings)?.caseInsensitivePaths === true
  return new QuotaPath(pattern, routeOf(config, text), ignoresCase)
}

/** Where a route asks for a credential, nobody else is told what the holders of one have used. */
function routeOf(config: PolicyConfig, text: string): Route {
  const { routes, cors: setting } = config.gateway
  const cors = setting === 'echo' ? anyOrigin : undefined
  const common = { upstream: undefined, scopes: [], cors }
  const preflight: Route | undefined = cors && {
    ...common,
    auth: 'optional',
    isPreflight: true,
    ownRules: NO_RULES,
    answer: preflightAnswer({ methods: METHODS, headers: HEADERS }, cors),
  }
  return {
    ...common,
    auth: routes.some(({ auth }) => auth === 'required') ? 'required' : 'optional',
    ownRules: [{ rule: ruleOf(config), route: text }],
    answer: ANSWER,
    preflight,
  }
}

const ALLOWED = METHODS.join(', ')

const ANSWER: RouteAnswer = {
  status: 200,
  body: 'own-quota',
  fieldsFor({ method }) {
    if (METHODS.includes(method)) return ['content-type', 'application/json', 'cache-control', 'no-store']
    const detail = `This path is only served with ${ALLOWED}.`
    throw new GatewayError('method-not-allowed', { detail, fields: ['Allow', ALLOWED] })
  },
}

/** One call in any second, so that clients which ask in a loop do not burden the counter store. */
function ruleOf(config: PolicyConfig) {
  return compiledRule({
    id: RULE,
    kind: PROJECT_LIMITS,
    mode: 'enforce',
    key: ['project'],
    missing: 'shared',
    // While the counters are away it says what can be known of them.
    onStoreError: 'local',
    config: { burst: 1, algorithm: 'sliding-window', lease: false },
    source: sourceIn(config, config.gatewayFile, ['quotaPath']),
  })
}
