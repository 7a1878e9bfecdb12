/** The package's `./testing`: helpers for the tests of plugins, built on the gateway's own code. */
import { type Static, type TSchema, Type } from 'typebox'
import { formatPath } from '../config/problem.js'
import { type Gateway, gatewaySchema } from '../config/schema/gateway.js'
import { createValidator } from '../config/validate.js'
import { MemoryStore } from './decide/store/memory.js'
import type { Demand } from './demand.js'
import { readWritten } from './listen/written.js'
import type { Facts } from './types.js'

/** A request described in a test. */
export interface WrittenRequest {
  /** Default GET. */
  readonly method?: string
  /** Path and query as a client sends them; default `/`. */
  readonly target?: string
  /** Default: Host `localhost`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Address of the TCP peer; default 127.0.0.1. */
  readonly peer?: string
  /** `trustedProxies` of gateway.yaml; default none. */
  readonly trustedProxies?: readonly string[]
}

/** The facts of a request in a gateway with default settings. Throws the error that a malformed request would get. */
export function factsOf(request: WrittenRequest = {}): Facts {
  const { method = 'GET', target = '/', headers = {}, peer = '127.0.0.1', trustedProxies = [] } = request
  const given = Object.entries(headers)
  const hasHost = given.some(([name]) => name.toLowerCase() === 'host')
  const fields = [...(hasHost ? [] : ['host', 'localhost']), ...given.flat()]
  return readWritten({ method, target, fields, peer }, { ...defaults(), trustedProxies }).facts
}

/**
 * The settings that a plugin's `create` or a rule's `config` would get for `written` YAML: validated, with defaults
 * filled in and durations in ms. Throws an Error with the messages of `sluice check`.
 */
export function settingsOf<S extends TSchema>(plugin: { readonly schema: S }, written: object): Static<S> {
  const settings = structuredClone(written)
  const faults = createValidator(plugin.schema)(settings, () => [])
  if (faults.length === 0) return settings as Static<S>
  throw new Error(faults.map(({ path, message }) => `${formatPath(path)}: ${message}`).join('\n'))
}

/** A clock that a test advances. */
export class TestClock {
  #ms = 0

  /** Milliseconds since the start. */
  now(): number {
    return this.#ms
  }

  pass(ms: number): void {
    this.#ms += ms
  }
}

/** The result of a demand. */
export interface Counted {
  readonly granted: boolean
  /** For each window of the demand, or for its slots or meter: what is left, and the ms until more is available. */
  readonly counts: readonly { readonly left: number | undefined; readonly resetMs: number }[]
  /** Gives a slot back; does nothing for other demands. */
  release(): void
}

/** Counters in memory, as in a gateway without Redis. */
export class TestCounters {
  readonly #store: MemoryStore

  constructor(clock: TestClock) {
    this.#store = new MemoryStore(() => clock.now())
  }

  /** Charges the demand to `key`, or refuses it, which charges nothing but the first refusal of a meter. */
  take(key: string, demand: Demand): Counted {
    const [answer] = this.#store.take([{ key, demand, group: 0, onStoreError: 'local' }])
    if (answer === undefined) throw new Error('the store did not answer')
    return {
      granted: answer.granted,
      counts: answer.counts.map(({ left, resetMs }) => ({ left, resetMs })),
      release: () => answer.release?.(),
    }
  }
}

function defaults(): Gateway {
  const settings = {
    version: 1,
    upstreams: { app: { url: 'http://127.0.0.1' } },
    routes: [{ path: '/**', upstream: 'app' }],
  }
  const some = { any: Type.Object({}) }
  createValidator(gatewaySchema({ identify: some, limit: some, observe: some }))(settings, () => [])
  return settings as unknown as Gateway
}
