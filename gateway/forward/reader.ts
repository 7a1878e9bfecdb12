/** The client that reads an answer: how long it may pause, and how it learns that there is no more. */
import type { Exchange } from './transport.js'

type Answer = Pick<Exchange, 'req' | 'res'>

/**
 * Cuts a client that stops reading for `idleMs`, until `event`; then calls `then`. Node's own socket timer knows it
 * from one that reads slowly.
 */
export function awaitReader(
  answer: Answer,
  event: 'drain' | 'finish',
  idleMs: number,
  then?: () => void,
): void {
  const { req, res } = answer
  const cut = (): void => cutAnswer(answer)
  res.setTimeout(idleMs, cut)
  // An answer that waits behind an earlier one of its connection has no socket whose timer could run.
  const queued = res.socket === null && event === 'drain'
  const turn = queued ? setTimeout(() => req.socket.destroy(), idleMs) : undefined
  if (queued) res.once('socket', () => clearTimeout(turn)).once('close', () => clearTimeout(turn))
  // Before Node's own listener, which sets the limit for the next request.
  res.prependOnceListener(event, () => {
    res.off('timeout', cut).setTimeout(0)
    // Node can emit this while another answer of the connection is written, which is to say within undici's parser:
    // that one parser serves all upstream connections, and must not be entered twice.
    if (then !== undefined) process.nextTick(then)
  })
}

/** Ends the client's connection so that its answer looks as cut as it is, even where only the end marks the end. */
export function cutAnswer({ req, res }: Answer): void {
  if (req.httpVersion === '1.0' && res.socket !== null) res.socket.resetAndDestroy()
  else res.destroy()
}
