/**
 * A log for faults that may occur with every request: it repeats the same message only now and then, with the
 * number of occurrences.
 */
import type { Log } from '../types.js'

const EVERY_MS = 10_000
/** Distinct messages that are tracked; all further ones share one entry. */
const MOST = 200

interface Said {
  at: number
  /** Occurrences since the last line. */
  unsaid: number
}

/**
 * Passes on the first of each message about one plugin and rule, then at most one in ten seconds, with the number of
 * omitted ones in `repeated`.
 */
export function boundedLog(log: Log, now: () => number = () => performance.now()): Log {
  const said = new Map<string, Said>()
  const bounded = (level: keyof Log) => (fields: object, message: string) => {
    const { plugin, rule } = fields as { plugin?: unknown; rule?: unknown }
    const own = `${level} ${plugin} ${rule} ${message}`
    const key = said.has(own) || said.size < MOST ? own : ''
    const before = said.get(key)
    if (before !== undefined && now() - before.at < EVERY_MS) {
      before.unsaid += 1
      return
    }
    said.set(key, { at: now(), unsaid: 0 })
    log[level](before?.unsaid ? { ...fields, repeated: before.unsaid } : fields, message)
  }
  return { debug: bounded('debug'), info: bounded('info'), warn: bounded('warn'), error: bounded('error') }
}
