/** Compiles the endpoint rules, in the order in which they are written, and the tree they are found by. */
import { trialName } from '../../config/words/share.js'
import { waitsOf } from '../../config/words/waits.js'
import { IN_FLIGHT, pluginConfig, VOLUMETRIC } from '../../config/words/words.js'
import { compiledRule } from '../compiled-rule.js'
import type { Rule } from '../types.js'
import { networkFault } from './access-entries.js'
import { onStoreErrorIn, type PolicyConfig, ruleFilesIn, sourceIn } from './documents.js'
import { type Fault, readPattern } from './fault.js'
import type { EndpointRule } from './policy.js'
import { type RuleSettings, shareOf, withTrial } from './shares-and-trials.js'
import { PathTrie } from './trie.js'
import { compileWhen } from './when.js'

export function compileEndpointRules(
  config: PolicyConfig,
  limitsReads: ReadonlySet<string>,
  faults: Fault[],
): { rules: EndpointRule[]; endpoint: PathTrie<Rule[]> } {
  const all: EndpointRule[] = []
  const trie = new PathTrie<Rule[]>()
  for (const { file, kind, document } of ruleFilesIn(config)) {
    for (const [i, entry] of document.rules.entries()) {
      const { id, match, mode, key, missing, when } = entry
      for (const [j, network] of (when?.networks ?? []).entries()) {
        const message = networkFault(network)
        if (message !== undefined) faults.push({ file, path: ['rules', i, 'when', 'networks', j], message })
      }
      const { inForce, tried } = withTrial(kind, pluginConfig(entry))
      const rule = compiledRule({
        ...{ id, kind, mode, key, missing },
        onStoreError: onStoreErrorIn(config, entry.onStoreError),
        share: shareOf(entry.enforceFor, 'keys'),
        config: inForce,
        source: sourceIn(config, file, ['rules', i]),
        when: when && compileWhen(when),
        reads: limitsReads.has(kind) || entry.reads,
        countsMessages: countsMessages(kind, entry),
        hidesNumbers: entry.refuse !== undefined,
        waits: kind === IN_FLIGHT ? waitsOf(entry) : undefined,
      })
      const trial = trialOf(rule, tried)
      const rules = trial === undefined ? [rule] : [rule, trial]
      for (const one of rules) all.push({ rule: one, match, when })
      for (const [j, text] of match.entries()) {
        const path = ['rules', i, 'match', j]
        const pattern = readPattern(text, file, path, faults)
        // Unlike buckets, several rules may watch one pattern: they share its place in the tree.
        const present = pattern && trie.add(pattern, [...rules])
        if (present === undefined) continue
        if (present.value.includes(rule)) {
          faults.push({ file, path, message: `The pattern "${text}" is written twice in rule "${id}".` })
        } else present.value.push(...rules)
      }
    }
  }
  return { rules: all, endpoint: trie }
}

/** The rule that counts by the quota on trial: for all keys, and otherwise as the rule in force. */
function trialOf(rule: Rule, tried: RuleSettings | undefined): Rule | undefined {
  if (tried === undefined) return undefined
  return compiledRule({
    ...rule,
    id: trialName(rule.id),
    mode: 'report-only',
    share: undefined,
    config: tried,
  })
}

/** A setting of the plugin: the pipeline has to know which requests may have messages. */
function countsMessages(kind: string, rule: { readonly [key: string]: unknown }): true | undefined {
  return kind === VOLUMETRIC && rule.count === 'message' ? true : undefined
}
