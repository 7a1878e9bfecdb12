/** The ways to the upstreams: opened when a configuration names them, shared by all that do, closed after the last. */
import { readFileSync } from 'node:fs'
import type { Gateway } from '../config/schema.js'
import { createHttpTransport } from './forward/http.js'
import type { OnUnreachable, UpstreamSettings } from './forward/transport.js'
import { createUpgradeTransport } from './forward/upgrade.js'
import type { Upstream } from './pipeline.js'
import type { Log } from './types.js'

interface Opened {
  readonly upstream: Upstream
  holders: number
  close(): Promise<void>
}

/** Upstreams by name, until they are let go. */
export interface Held {
  readonly byName: ReadonlyMap<string, Upstream>
  /** Closes those that nobody else holds; no request may be under way on them, or come. */
  release(): Promise<void>
}

export class Upstreams {
  /** By the text of their settings: an upstream that a reload leaves as it was keeps its connections. */
  readonly #opened = new Map<string, Opened>()
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  hold(all: readonly UpstreamSettings[]): Held {
    const byName = new Map<string, Upstream>()
    const held = new Map<string, Opened>()
    for (const settings of all) {
      const text = JSON.stringify(settings)
      const opened = this.#opened.get(text) ?? open(settings, this.#log)
      opened.holders += 1
      this.#opened.set(text, opened)
      held.set(text, opened)
      byName.set(settings.name, opened.upstream)
    }
    const release = async (): Promise<void> => {
      const closing: Promise<void>[] = []
      for (const [text, opened] of held) {
        opened.holders -= 1
        if (opened.holders === 0 && this.#opened.delete(text)) closing.push(opened.close())
      }
      held.clear()
      await Promise.all(closing)
    }
    return { byName, release }
  }

  /** Closes all, whoever holds them; cuts what is still under way. */
  async close(): Promise<void> {
    const all = [...this.#opened.values()]
    this.#opened.clear()
    await Promise.all(all.map(opened => opened.close()))
  }
}

function open(settings: UpstreamSettings, log: Log): Opened {
  const onUnreachable = unreachableLog(settings.name, log)
  const http = createHttpTransport(settings, onUnreachable)
  const upgrades = createUpgradeTransport(settings, onUnreachable)
  return {
    upstream: {
      name: settings.name,
      forward: exchange => http.forward(exchange),
      upgrade: exchange => upgrades.upgrade(exchange),
    },
    holders: 0,
    async close() {
      upgrades.close()
      await http.close()
    },
  }
}

const REPEAT_MS = 10_000

/** One line for each reason, and again every ten seconds while it lasts: an outage fails every request. */
function unreachableLog(upstream: string, log: Log): OnUnreachable {
  let told = ''
  let silentUntil = 0
  return error => {
    const { code } = error as NodeJS.ErrnoException
    const reason = error.message || (code ?? error.name)
    const now = performance.now()
    if (reason === told && now < silentUntil) return
    told = reason
    silentUntil = now + REPEAT_MS
    log.warn({ upstream, code, reason }, 'upstream unreachable')
  }
}

const EMBEDDED_TIMEOUTS = { connectMs: 2000, headMs: 30_000, idleMs: 60_000, upgradeIdleMs: 3_600_000 }

/** The settings of every upstream; `addressOf` knows where the embedded services listen. */
export function upstreamSettings(
  { upstreams, fingerprintHeaders }: Gateway,
  addressOf: (service: string) => string,
): UpstreamSettings[] {
  return Object.entries(upstreams).map(([name, written]) => ({
    name,
    url: 'embedded' in written ? addressOf(written.embedded) : written.url,
    ca: 'ca' in written && written.ca !== undefined ? readFileSync(written.ca, 'utf8') : undefined,
    timeouts: 'embedded' in written ? EMBEDDED_TIMEOUTS : timeoutsOf(written.timeouts),
    fingerprintHeaders,
  }))
}

function timeoutsOf({
  connect,
  head,
  idle,
  upgradeIdle,
}: Record<'connect' | 'head' | 'idle' | 'upgradeIdle', number>) {
  return { connectMs: connect, headMs: head, idleMs: idle, upgradeIdleMs: upgradeIdle }
}
