/** The ways to the upstreams: opened when a configuration names them, shared by all that do, closed after the last. */
import type { Gateway } from '../config/schema.js'
import { createHttpTransport } from './forward/http.js'
import type { UpstreamSettings } from './forward/transport.js'
import { createUpgradeTransport } from './forward/upgrade.js'
import type { Upstream } from './pipeline.js'

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

  hold(all: readonly UpstreamSettings[]): Held {
    const byName = new Map<string, Upstream>()
    const held = new Map<string, Opened>()
    for (const settings of all) {
      const text = JSON.stringify(settings)
      const opened = this.#opened.get(text) ?? open(settings)
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

function open(settings: UpstreamSettings): Opened {
  const http = createHttpTransport(settings)
  const upgrades = createUpgradeTransport(settings)
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

const EMBEDDED_TIMEOUTS = { connectMs: 2000, headMs: 30_000, idleMs: 60_000, upgradeIdleMs: 3_600_000 }

/** The settings of every upstream; `addressOf` knows where the embedded services listen. */
export function upstreamSettings(
  { upstreams, fingerprintHeaders }: Gateway,
  addressOf: (service: string) => string,
): UpstreamSettings[] {
  return Object.entries(upstreams).map(([name, written]) => ({
    name,
    url: 'embedded' in written ? addressOf(written.embedded) : written.url,
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
