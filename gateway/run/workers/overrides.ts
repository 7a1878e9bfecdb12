/**
 * How an operator's override reaches the workers: the supervisor stores it, looks at Redis for those of other gateways,
 * and pushes all of them to every worker after each change. A call that changed one is answered once they have it.
 */
import { followOverrides, type OpenOverrides, openOverrides } from '../../overrides/open.js'
import type { OverrideJournal } from '../../overrides/override.js'
import type { Runtime } from '../../overrides/runtime.js'
import { type Texts, textsOf } from '../../overrides/stored-form.js'
import type { Log } from '../../types.js'
import type { Channel } from './channel.js'
import type { WorkerQuestions } from './questions.js'
import type { SupervisorCalls } from './worker.js'
import type { Member } from './worker-pool.js'

/** The supervisor's end. */
export class PushedOverrides {
  readonly opened: OpenOverrides
  /** Resolves when the last change is in force in every worker that answers in time. */
  inForce: Promise<unknown> = Promise.resolve()

  private constructor(opened: OpenOverrides) {
    this.opened = opened
  }

  /** @param redis its address */
  static async open(
    redis: string,
    workers: Pick<WorkerQuestions, 'pushOverrides' | 'suspectRedis'>,
    log: Log,
  ): Promise<PushedOverrides> {
    let pushed: PushedOverrides | undefined
    const opened = await openOverrides(redis, log, {
      changed(contents) {
        const inForce = workers.pushOverrides(textsOf(contents))
        if (pushed !== undefined) pushed.inForce = inForce
      },
      unanswered: () => workers.suspectRedis(),
    })
    pushed = new PushedOverrides(opened)
    return pushed
  }

  /** All overrides, for a worker that starts. */
  get texts(): Texts {
    return textsOf(this.opened.store.contents)
  }

  /** For a worker that gets every later change: those since it was started. */
  async pushTo({ channel }: Member): Promise<void> {
    await channel.ask('overrides', this.texts)
  }
}

/** A worker's end: what it is pushed is in force, and what it did is recorded by the supervisor. */
export function followSupervisor(
  supervisor: Channel<SupervisorCalls>,
  texts: Texts,
  log: Log,
): { readonly runtime: Runtime; receive(texts: Texts): void } {
  const journal: OverrideJournal = {
    record: override => supervisor.ask('recordOverride', override),
    withdraw: id => supervisor.ask('withdrawOverride', id),
  }
  const followed = followOverrides(journal, log)
  followed.receive(texts)
  return followed
}
