/** Activates a changed configuration in every worker, or in none. */
import type { FileContents } from '../../../config/files.js'
import { Disconnected } from './channel.js'
import type { Member, WorkerPool } from './worker-pool.js'

/** How long a worker may take to open what a configuration needs. */
const PREPARE_MS = 30_000
const COMMIT_MS = 5_000

/**
 * First every worker opens the new configuration, then all activate it. Rejects, with nothing changed, when one cannot,
 * or does not answer. A worker that ends meanwhile is left out: its successor starts with the configuration in force by
 * then.
 */
export async function changeAll(
  { members }: Pick<WorkerPool, 'members'>,
  contents: FileContents,
): Promise<void> {
  const silent = members.find(({ answers }) => !answers())
  if (silent !== undefined) {
    throw new Error(
      `Worker ${silent.pid} does not answer. Unless it recovers it is replaced: try again then.`,
    )
  }
  const prepared = await Promise.allSettled(
    members.map(member => within(PREPARE_MS, member.channel.ask('prepare', contents), member)),
  )
  const failed = prepared.find(
    (one): one is PromiseRejectedResult => one.status === 'rejected' && !(one.reason instanceof Disconnected),
  )
  const finish = failed === undefined ? 'commit' : 'discard'
  // Neither can fail in a live worker; a busy one does it later.
  const finished = members.map(member =>
    within(COMMIT_MS, member.channel.ask(finish), member).catch(() => undefined),
  )
  await Promise.all(finished)
  if (failed !== undefined) throw failed.reason
}

/** Rejects when a worker takes longer to answer. */
export function within<T>(ms: number, answer: Promise<T>, { pid }: Member): Promise<T> {
  return new Promise((resolve, reject) => {
    const error = new Error(`Worker ${pid} has not answered within ${ms / 1000} s.`)
    const timer = setTimeout(() => reject(error), ms)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
