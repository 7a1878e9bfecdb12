/** An explanation from the files alone, with empty counters. */
import { randomBytes } from 'node:crypto'
import type { Asked } from '../../gateway/admin/explain.js'
import { createLimiters, toolsOf } from '../../gateway/configured/plugins.js'
import { Questions } from '../../gateway/decide/question.js'
import { openStore } from '../../gateway/decide/store/open.js'
import { UnknownQuestion } from '../../gateway/errors.js'
import { type Explanation, explain } from '../../gateway/explain/explain.js'
import { UnknownHosts } from '../../gateway/identify/unknown.js'
import { didYouMean } from '../arguments.js'
import { Unusable } from '../command.js'
import { loadInput, quiet } from '../config.js'
import type { Io } from '../io.js'

export async function explainOffline(asked: Asked, config: string, io: Io): Promise<Explanation> {
  const loaded = await loadInput(config, io.env)
  const { store: settings } = loaded.config.gateway
  const { store } = await openStore({ ...settings, redis: '' }, quiet, NO_HOOKS)
  const limiters = createLimiters(loaded, toolsOf(loaded.config, quiet))
  const counters = {
    // Hashes made with a temporary secret mean nothing elsewhere, and are not shown.
    questions: new Questions(limiters, randomBytes(32), quiet),
    store,
    now: () => performance.now(),
  }
  try {
    return await explain(asked, { loaded, counters, unknownHosts: new UnknownHosts(), live: false })
  } catch (error) {
    if (!(error instanceof UnknownQuestion)) throw error
    const ids = loaded.config.projects.map(({ id }) => id)
    throw new Unusable(`${error.message}${didYouMean(asked.project ?? '', ids)}`)
  } finally {
    await Promise.all([...limiters.values()].map(limiter => limiter.close?.()))
    await store.close()
    await loaded.compiled.close()
  }
}

const NO_HOOKS = { failed() {}, late() {}, awayChanged() {} }
