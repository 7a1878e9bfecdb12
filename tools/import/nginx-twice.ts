/** Names that a server of nginx has after another one of its address: nginx passes them over there. */
import type { Migration } from './migration.js'
import { addressesOf } from './nginx-servers.js'
import type { Directive } from './nginx-text.js'

/** The `http` block, in which each server has only the names by which requests reach it. */
export function withoutTwice(http: readonly Directive[], into: Migration): Directive[] {
  const taken = new Set<string>()
  return http.map(one => {
    if (one.name !== 'server') return one
    const block = one.block ?? []
    const addresses = addressesOf(block)
    const names = block.flatMap(({ name, words }) => (name === 'server_name' ? words : []))
    const passedOver = new Set(names.filter(name => addresses.every(at => taken.has(`${at} ${lower(name)}`))))
    for (const at of addresses) for (const name of names) taken.add(`${at} ${lower(name)}`)
    passedOver.delete('_')
    if (passedOver.size === 0) return one
    for (const name of passedOver)
      into.leftOut(one, `the name "${name}" of this server. nginx takes an earlier server of that name.`)
    const own = (of: Directive): Directive =>
      of.name === 'server_name' ? { ...of, words: of.words.filter(word => !passedOver.has(word)) } : of
    return { ...one, block: block.map(own) }
  })
}

const lower = (name: string): string => name.toLowerCase()
