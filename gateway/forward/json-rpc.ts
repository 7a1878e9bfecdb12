/** What clients of JSON-RPC understand: refusals as an error for each of their calls (https://www.jsonrpc.org/specification). */

/** Of those that the specification leaves to implementations, -32099 to -32000. */
const CODE = -32029

interface Problem {
  readonly detail: string
}

/**
 * The body of a refusal; '' if none of the calls is to be answered. A batch has the problem document once, with its first
 * error: it is the same for all, and a batch of short calls must not have an answer many times its own size.
 *
 * @param ids as JSON
 */
export function errorsFor(ids: readonly string[], isBatch: boolean, problem: Problem): string {
  const message = JSON.stringify(problem.detail)
  const data = `,"data":${JSON.stringify(problem)}`
  const errors = ids.map((id, i) => {
    const error = `{"code":${CODE},"message":${message}${i === 0 ? data : ''}}`
    return `{"jsonrpc":"2.0","id":${id},"error":${error}}`
  })
  return isBatch && errors.length > 0 ? `[${errors.join()}]` : errors.join()
}
