/** Compiles the endpoint rules, in the order in which they are written, and the tree they are found by. */
import type { Rule } from '../types.js'
import { networkFault } from './access-entries.js'
import { type Fault, readPattern } from './fault.js'
import type { PolicyInput } from './input.js'
import type { EndpointRule } from './policy.js'
import { shareOf } from './rollout.js'
import { PathTrie } from './trie.js'
import { compileWhen } from './when.js'

export function compileEndpointRules(
  input: PolicyInput,
  faults: Fault[],
): { rules: EndpointRule[]; endpoint: PathTrie<Rule[]> } {
  const all: EndpointRule[] = []
  const trie = new PathTrie<Rule[]>()
  for (const { file, kind, limitsReads, rules } of input.endpointRules) {
    for (const [i, { match, ...config }] of rules.entries()) {
      const { id, mode, key, missing, onStoreError } = config
      const source = input.sourceOf(file, ['rules', i])
      const share = shareOf(config.enforceFor, 'keys')
      const reads = limitsReads || config.reads
      const when = config.when && compileWhen(config.when)
      for (const [j, network] of (config.when?.networks ?? []).entries()) {
        const message = networkFault(network)
        if (message !== undefined) faults.push({ file, path: ['rules', i, 'when', 'networks', j], message })
      }
      const rule: Rule = { id, kind, mode, key, missing, onStoreError, share, config, source, when, reads }
      all.push({ rule, match })
      for (const [j, text] of match.entries()) {
        const path = ['rules', i, 'match', j]
        const pattern = readPattern(text, file, path, faults)
        // Unlike buckets, several rules may watch one pattern: they share its place in the tree.
        const present = pattern && trie.add(pattern, [rule])
        if (present === undefined) continue
        if (present.value.includes(rule)) {
          faults.push({ file, path, message: `The pattern "${text}" is written twice in rule "${id}".` })
        } else present.value.push(rule)
      }
    }
  }
  return { rules: all, endpoint: trie }
}
