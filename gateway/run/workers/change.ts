/** A changed configuration in every worker, or in none. */
import type { FileContents } from '../../../config/files.js'
import { Disconnected } from './channel.js'
import type { Crew, Member } from './crew.js'

/** How long a worker may take to open what a configuration needs. */
const PREPARE_MS = 30_000
const COMMIT_MS = 5_000

/**
 * First each worker opens what the files say, then all put it in force. Rejects, with nothing changed, when one cannot, or
 * does not answer. A worker that ends meanwhile is left out: its successor starts with what is in force by then.
 */
export async function changeAll({ members }: Pick<Crew, 'members'>, contents: FileContents): Promise<void> {
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
  // Neither can fail in a worker that lives; one that is busy does it when it comes to it.
  const finished = members.map(member =>
    within(COMMIT_MS, member.channel.ask(finish), member).catch(() => undefined),
  )
  await Promise.all(finished)
  if (failed !== undefined) throw failed.reason
}

/** Rejects when the answer of a worker takes longer. */
export function within<T>(ms: number, answer: Promise<T>, { pid }: Member): Promise<T> {
  return new Promise((resolve, reject) => {
    const error = new Error(`Worker ${pid} has not answered within ${ms / 1000} s.`)
    const timer = setTimeout(() => reject(error), ms)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
