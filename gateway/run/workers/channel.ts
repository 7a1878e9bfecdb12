/** Questions and answers between the supervisor and a worker, over the channel that the fork opened. */
import type { Worker } from 'node:cluster'
import { Failure, NotFound, UnknownQuestion, Unnamed, Unreachable } from '../../errors.js'

/** The calls one side answers, by name. Arguments and results are plain data. */
type Calls = Readonly<Record<string, (...given: never[]) => unknown>>
type Call<There, What extends keyof There> = There[What] extends (...given: infer Given) => infer Result
  ? { given: Given; result: Awaited<Result> }
  : never

/** An error as plain data. */
export interface SentError {
  /** Name of its class. */
  readonly name: string
  readonly message: string
  readonly stack?: string | undefined
  readonly code?: string | undefined
}

type Message =
  | { readonly ask: string; readonly id: number; readonly given: readonly never[] }
  | { readonly id: number; readonly result?: unknown; readonly error?: SentError }

/** The other process has gone. */
export class Disconnected extends Error {}

interface Waiting {
  resolve(result: never): void
  reject(error: Error): void
}

/** One end of the channel; `There` are the calls that the other end answers. */
export class Channel<There> {
  /** The calls that this end answers; may be changed at any time. */
  answers: Calls
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #asked = 0

  /** `worker` is the other process, or, in a worker, this process. */
  constructor(worker: Worker, answers: Calls) {
    this.answers = answers
    this.#worker = worker
    worker.on('message', (message: Message) => {
      if ('ask' in message) this.#answer(message)
      else this.#settle(message)
    })
    worker.on('disconnect', () => this.#close())
  }

  /** Rejects with the error that the other end threw, or with Disconnected. */
  ask<What extends keyof There & string>(
    what: What,
    ...given: Call<There, What>['given'] & readonly unknown[]
  ): Promise<Call<There, What>['result']> {
    this.#asked += 1
    const id = this.#asked
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#send({ ask: what, id, given: given as readonly unknown[] as readonly never[] })
    })
  }

  async #answer({ ask, id, given }: Extract<Message, { ask: string }>): Promise<void> {
    try {
      const answer = this.answers[ask]
      if (answer === undefined) throw new Error(`"${ask}" cannot be asked now.`)
      this.#send({ id, result: await answer(...given) })
    } catch (error) {
      this.#send({ id, error: sendableError(error as Error) })
    }
  }

  #settle({ id, result, error }: Exclude<Message, { ask: string }>): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(result as never)
    else waiting?.reject(errorOf(error))
  }

  #send(message: Message): void {
    if (!this.#worker.isConnected()) this.#close()
    // A call that cannot be sent is rejected on disconnect.
    else this.#worker.send(message, () => undefined)
  }

  #close(): void {
    for (const { reject } of this.#waiting.values()) reject(new Disconnected('The process has ended.'))
    this.#waiting.clear()
  }
}

/** Errors whose class is preserved across processes. */
const CLASSES = [NotFound, Unnamed, Unreachable, UnknownQuestion, Failure]

export function sendableError(error: Error): SentError {
  const { message, stack } = error
  const { code } = error as NodeJS.ErrnoException
  return { name: error.constructor.name, message, stack, code }
}

export function errorOf({ name, message, stack, code }: SentError): Error {
  const Known = CLASSES.find(one => one.name === name)
  if (Known !== undefined) return new Known(message)
  return Object.assign(new Error(message), { stack, code })
}
