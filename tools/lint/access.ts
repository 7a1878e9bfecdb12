/** Reports access entries without effect (they have expired, or others override them), and those that lift all limits. */

import { endOf } from '../../config/formats.js'
import type { AccessPolicy } from '../../config/load.js'
import { parseNetwork } from '../../config/words/address.js'
import { createNetworks } from '../../config/words/networks.js'
import type { Remark, Subject } from './lint.js'

const LISTS = ['networks', 'projects'] as const
type List = (typeof LISTS)[number]

export function checkAccess({ loaded, now }: Subject): Remark[] {
  const { access } = loaded.config
  const denied = deniedFor(access)
  return access.flatMap(policy => [...past(policy, now), ...exemptsAll(policy), ...overruled(policy, denied)])
}

function past({ file, document }: AccessPolicy, now: number): Remark[] {
  return document.rules.flatMap(({ id, until }, i): Remark[] => {
    if (until === undefined || endOf(until) > now) return []
    const message = `The time of "${id}" is over: it is ignored. Remove it, or give it a later day.`
    return [{ severity: 'warning', file, path: ['rules', i, 'until'], message }]
  })
}

/** Networks so wide that clients, not only one's own machines, are never limited. */
function exemptsAll({ file, document }: AccessPolicy): Remark[] {
  return document.rules.flatMap(({ action, mode, networks = [] }, i) => {
    if (action === 'deny' || mode !== 'enforce') return []
    return networks.flatMap((network, j): Remark[] => {
      if (!holdsClients(network)) return []
      const message = `${network} holds clients too: no rule limits them. Exempt only networks of your own.`
      return [{ severity: 'warning', file, path: ['rules', i, 'networks', j], message }]
    })
  })
}

/** Networks and projects that an entry exempts to no effect, because another entry without an end denies them. */
function overruled({ file, document }: AccessPolicy, denied: ReadonlyMap<string, string>): Remark[] {
  return document.rules.flatMap((rule, i) => {
    if (rule.action === 'deny') return []
    const over = (list: List) =>
      (rule[list] ?? []).flatMap((name, j): Remark[] => {
        const by = denied.get(`${rule.mode} ${list} ${name}`)
        if (by === undefined) return []
        const message = `"${name}" is not exempt: "${by}" denies it, and deny wins.`
        return [{ severity: 'warning', file, path: ['rules', i, list, j], message }]
      })
    return LISTS.flatMap(over)
  })
}

/** By mode, list and name: the first entry without an end that denies it. */
function deniedFor(all: readonly AccessPolicy[]): Map<string, string> {
  const denied = new Map<string, string>()
  for (const rule of all.flatMap(({ document }) => document.rules)) {
    if (rule.action !== 'deny' || rule.until !== undefined) continue
    for (const list of LISTS) {
      for (const name of rule[list] ?? []) {
        const key = `${rule.mode} ${list} ${name}`
        if (!denied.has(key)) denied.set(key, rule.id)
      }
    }
  }
  return denied
}

/** 10.0.0.0/8 is the widest private network, a /19 of IPv6 among the largest of one company. */
const FEWEST_BITS = { v4: 8, v6: 19 }
/** Private addresses of IPv6 (RFC 4193), and those of neighbours (RFC 4291, section 2.5.6). */
const isPrivate = createNetworks(['fc00::/7', 'fe80::/10'])

/** True for a network, as text, that holds far more than anybody's own machines, so that it cannot but hold clients. */
export function holdsClients(network: string): boolean {
  const { words, bits } = parseNetwork(network) ?? { words: [], bits: 128 }
  return bits < (words.length === 1 ? FEWEST_BITS.v4 : FEWEST_BITS.v6) && !isPrivate(network)
}
