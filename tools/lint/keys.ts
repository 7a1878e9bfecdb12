/**
 * Reports keys that a client can change at will, and keys with an unlimited number of values: who can create them, and
 * what bounds them. The latter not for in-flight rules: their keys exist only while a request holds its slot.
 */

import { listed } from '../../config/problem.js'
import type { RuleEntry } from '../../config/schema/policy.js'
import { keyOf } from '../../config/words/bucket.js'
import { MOST_KEYS } from '../../gateway/decide/store/meters.js'
import type { VolumetricRule } from '../../gateway/explain/settings.js'
import { grouped } from '../text.js'
import type { Remark, Subject } from './lint.js'

type KeyPart = RuleEntry['key'][number]

export function checkKeys({ rules: files, limits }: Subject): Remark[] {
  return [...limits.flatMap(bucketKeys), ...files.flatMap(ruleKeys)]
}

function bucketKeys({ file, document }: Subject['limits'][number]): Remark[] {
  return Object.entries(document.buckets).flatMap(([name, bucket]): Remark[] => {
    const parts = keyOf(bucket)
    const open = [
      ...(parts.includes('client-ip') ? [CLIENT] : []),
      ...(parts.includes('json-rpc') ? [CALL] : []),
    ]
    if (open.length === 0) return []
    const message = `Any number of keys: one for each ${listed(open, 'and')}. Each lives as long as the bucket's longest window.`
    return [{ severity: 'note', file, path: ['buckets', name, 'key'], message }]
  })
}

function ruleKeys({ file, kind, document }: Subject['rules'][number]): Remark[] {
  return document.rules.flatMap((rule, i): Remark[] => {
    const at = { file, path: ['rules', i, 'key'] }
    const evasion = evasionOf(rule)
    if (evasion !== undefined) return [{ severity: 'warning', ...at, message: evasion }]
    const open = rule.key.flatMap(part => valuesOf(part, rule) ?? [])
    if (open.length === 0 || kind === 'in-flight') return []
    const message = `Any number of keys: one for each ${listed(open, 'and')}. ${boundOf(kind, rule)}`
    return [{ severity: 'note', ...at, message }]
  })
}

const CLIENT = 'client address (of IPv6 the /64)'
const CALL = 'JSON-RPC method or tool, made-up ones included'

/** Parts of which a client can invent any number of values; undefined for parts with few values. */
function valuesOf(part: KeyPart, { match }: RuleEntry): string | undefined {
  switch (part) {
    case 'client-ip':
      return CLIENT
    case 'ja3':
    case 'ja4':
      return `TLS fingerprint (${part})`
    case 'email-or-flow':
      return 'e-mail address or flow id'
    case 'json-rpc':
      return CALL
    case 'full-path':
      return match.some(pattern => /[{*]/.test(pattern)) ? 'path that the patterns match' : undefined
    case 'host':
      return 'host'
    default:
      return part.startsWith('header:') ? `value of ${part.slice('header:'.length)}` : undefined
  }
}

/** A header, Host among them, is the only part that a client can change at no cost while its requests still succeed. */
function evasionOf({ key }: RuleEntry): string | undefined {
  const header = key.find(part => part === 'host' || part.startsWith('header:'))?.replace('header:', '')
  if (header === undefined) return undefined
  return `A client that sends another "${header}" with each request is never limited and makes a new counter each time, whatever else is in the key. Limit client-ip or project by a rule beside it, or let a trusted proxy set the header.`
}

function boundOf(kind: string, rule: RuleEntry): string {
  if (kind !== 'volumetric') return 'Its plugin decides how long each lives.'
  const { quota, blockFor = 0 } = rule as unknown as VolumetricRule
  const seconds = Math.max(quota.per, blockFor) / 1000
  return `Each lives for at most ${grouped(seconds)} s; a gateway without Redis keeps ${grouped(MOST_KEYS)} at most, shared equally by all volumetric rules.`
}
