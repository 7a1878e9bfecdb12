/** A client connection that sends an attack and reads all responses. */
import { connect } from 'node:net'
import { sleep } from '../../../helpers/wait.js'
import type { Attack } from './hostile.js'

export interface SeenAnswer {
  readonly status: number
  /**
   * The request id that the upstream read, and the gateway's id of the request; absent on the gateway's own responses.
   */
  readonly saw: string | undefined
  readonly requestId: string | undefined
  readonly contentType: string | undefined
  readonly body: string
  readonly whole: boolean
}

export interface Played {
  readonly answers: readonly SeenAnswer[]
  /** The client had to end its side, because the gateway waited for more bytes. */
  readonly gaveUp: boolean
  /** The gateway did not close the connection even then. */
  readonly hung: boolean
  /** Bytes that are not part of a response. */
  readonly garbage: string
}

/**
 * Counts checks, not milliseconds: on a busy machine the gateway, which runs in this process, is as late as the client.
 */
const LOOK_MS = 25
const QUIET_LOOKS = 20
const HANG_LOOKS = 320

/** Sends the attack in its pieces and reads until the gateway closes, or has been quiet for long enough. */
export async function play(port: number, { bytes, cuts }: Attack): Promise<Played> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let received = ''
  let quiet = 0
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  socket.on('error', () => undefined)
  socket.on('data', data => {
    received += data.toString('latin1')
    quiet = 0
  })
  let from = 0
  for (const cut of [...cuts, bytes.length]) {
    if (cut > from) socket.write(bytes.slice(from, cut), 'latin1')
    from = cut
    await new Promise(resolve => setImmediate(resolve))
  }
  let gaveUp = false
  let hung = false
  while (!socket.destroyed) {
    await Promise.race([closed, sleep(LOOK_MS)])
    quiet += 1
    if (!gaveUp && quiet > QUIET_LOOKS) {
      gaveUp = true
      socket.end()
    }
    if (quiet > HANG_LOOKS) {
      hung = true
      socket.destroy()
    }
  }
  return { ...answersIn(received), gaveUp, hung }
}

/** What a strict client reads: responses, one after the other, and nothing else. */
function answersIn(text: string): { answers: SeenAnswer[]; garbage: string } {
  const answers: SeenAnswer[] = []
  let rest = text
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    const [line = '', ...lines] = rest.slice(0, end === -1 ? rest.length : end).split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
    if (!(status >= 100) || end === -1) return { answers, garbage: rest }
    rest = rest.slice(end + 4)
    if (status < 200) continue
    const value = (name: string): string | undefined =>
      lines
        .find(field => field.toLowerCase().startsWith(`${name}:`))
        ?.slice(name.length + 1)
        .trim()
    const saw = value('x-saw')
    // The gateway's own responses carry no X-Method. Their bodies begin with a brace; without one, it was a HEAD.
    const bodyless = status === 204 || value('x-method') === 'HEAD' || (saw === undefined && rest[0] !== '{')
    const length = bodyless ? 0 : Number(value('content-length') ?? rest.length)
    const body = rest.slice(0, length)
    const whole = body.length === length
    const about = { requestId: value('x-request'), contentType: value('content-type') }
    answers.push({ status, saw, body, whole, ...about })
    rest = rest.slice(length)
  }
  return { answers, garbage: '' }
}
