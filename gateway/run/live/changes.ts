/** The differences made by the last change of policy. */
import type { LiveChanges } from '../../admin/live-snapshot.js'
import { compare } from '../../explain/difference/compare.js'
import { sentencesOf } from '../../explain/difference/sentences.js'
import type { Loaded } from '../load.js'
import type { Former } from '../reload.js'

export class Changes {
  #known: { readonly former: Former; readonly loaded: Loaded; readonly changes: LiveChanges } | undefined

  /** In the words of `sluice diff`; computed once for each change. Null when nothing was in force before. */
  between(former: Former | undefined, loaded: Loaded): LiveChanges | null {
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
