/** The differences made by the last change of policy. */
import type { LiveChanges } from '../../admin/live-snapshot.js'
import type { Configuration } from '../../configured/load.js'
import { compare } from '../../explain/difference/compare.js'
import { sentencesOf } from '../../explain/difference/sentences.js'
import type { Former } from '../reload.js'

export class Changes {
  #known:
    | { readonly former: Former; readonly loaded: Configuration; readonly changes: LiveChanges }
    | undefined

  /** In the words of `sluice diff`; computed once for each change. Null when nothing was in force before. */
  between(former: Former | undefined, loaded: Configuration): LiveChanges | null {
    if (former === undefined) return null
    if (this.#known?.former !== former || this.#known.loaded !== loaded) {
      const [from, to] = [former.loaded, loaded].map(({ compiled }) => compiled.policy.revision) as [
        string,
        string,
      ]
      const changes = [...sentencesOf(compare(former.loaded, loaded))]
      this.#known = { former, loaded, changes: { from, to, at: former.until.toISOString(), changes } }
    }
    return this.#known.changes
  }
}
