/** Has wrong credentials counted by the supervisor, which counts for all workers, as long as it answers soon. */

/** Longer than this no client waits to be told that its credential is wrong. */
const PATIENCE_MS = 500
/** Unanswered questions; what comes beyond is not counted, or guesses would fill the memory of a worker. */
const MOST_OPEN = 1000

type Count = (client: string, credential: string) => Promise<number | undefined>

/** `ask` puts the question; undefined, as if nothing had been counted, without an answer in time. Never rejects. */
export function countInTime(ask: Count): Count {
  let open = 0
  return async (client, credential) => {
    if (open >= MOST_OPEN) return undefined
    open += 1
    const answer = ask(client, credential)
      .catch(() => undefined)
      .finally(() => {
        open -= 1
      })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<undefined>(resolve => {
      timer = setTimeout(resolve, PATIENCE_MS, undefined)
    })
    return Promise.race([answer, late]).finally(() => clearTimeout(timer))
  }
}
