/**
 * The health of a service's database: failures are counted and logged at intervals, and the database is retried until
 * it works.
 */
import { setInterval } from 'node:timers'

/**
 * Why a database fails: no room, a failing disk, a lock that another process holds too long, a read-only file or disk,
 * or a server that cannot be reached.
 */
export const storeFaults = ['full', 'failing', 'busy', 'locked', 'away'] as const
export type StoreFault = (typeof storeFaults)[number]

export interface StoreHealthOptions {
  /** Prefix of the series: `directory` gives `directory_store_errors_total`. */
  readonly name: string
  readonly log: {
    info(fields: object, message: string): void
    error(fields: object, message: string): void
  }
}

export type StoreHealth = ReturnType<typeof createStoreHealth>

const lookMs = 1000
/** One log line at the first failure, one a minute while it lasts, and one when it ends. */
const quietMs = 60_000

/** The health of a database that has not failed yet. */
export function createStoreHealth({ name, log }: StoreHealthOptions) {
  const counts = new Map<StoreFault, number>(storeFaults.map(fault => [fault, 0]))
  let trouble: { readonly fault: StoreFault; readonly since: number; refused: number } | undefined
  let loggedAt = Number.NEGATIVE_INFINITY
  let mend: (() => Promise<void>) | undefined
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined

  const seconds = (since: number): number => Math.round((performance.now() - since) / 100) / 10

  async function look(): Promise<void> {
    try {
      await mend?.()
    } catch {
      return
    }
    if (!trouble) return
    const { since, refused } = trouble
    trouble = undefined
    clearInterval(timer)
    loggedAt = Number.NEGATIVE_INFINITY
    log.info({ seconds: seconds(since), failures: refused }, `The ${name} database works again`)
  }

  return {
    /** Counts a failure. The cause is for the log only. */
    failed(fault: StoreFault, cause: string): void {
      counts.set(fault, (counts.get(fault) ?? 0) + 1)
      if (!trouble) {
        trouble = { fault, since: performance.now(), refused: 0 }
        timer = setInterval(() => {
          looking ??= look().finally(() => {
            looking = undefined
          })
        }, lookMs).unref()
      }
      trouble.refused += 1
      const now = performance.now()
      if (now - loggedAt < quietMs) return
      loggedAt = now
      const fields = { fault, failures: trouble.refused, seconds: seconds(trouble.since), err: cause }
      log.error(fields, `The ${name} database ${sentences[fault]}: requests that need it get 503`)
    },
    /** `restore` is called every second while the database is failing; the failure ends when it is fulfilled. */
    watch(restore: () => Promise<void>): void {
      mend = restore
    },
    /** A sentence while the database is failing. */
    trouble: (): string | undefined => trouble && `the ${name} database ${sentences[trouble.fault]}`,
    /** The series in the Prometheus text format. */
    text(): string {
      const total = `${name}_store_errors_total`
      const state = `${name}_store_degraded`
      return [
        `# HELP ${total} Failed calls to the database, by fault.`,
        `# TYPE ${total} counter`,
        ...storeFaults.map(fault => `${total}{fault="${fault}"} ${counts.get(fault)}`),
        `# HELP ${state} 1 while the database accepts no changes.`,
        `# TYPE ${state} gauge`,
        `${state} ${trouble ? 1 : 0}`,
        '',
      ].join('\n')
    },
    async close(): Promise<void> {
      clearInterval(timer)
      await looking
    },
  }
}

const sentences: Readonly<Record<StoreFault, string>> = {
  full: 'has no room left on its disk',
  failing: 'cannot write to its disk, or read from it',
  busy: 'is held by another process',
  locked: 'may not be written',
  away: 'cannot be reached',
}
