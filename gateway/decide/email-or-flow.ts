/** The key part of recovery requests: the e-mail, or the flow id (spec, 'In-flight limits', last row). */
import { createHmac } from 'node:crypto'
import type { Facts, Matched } from '../types.js'

/** What a rule may look at of a body: enough for any recovery form, little enough to hold in memory. */
export const PEEK_BYTES = 64 * 1024

/** True when the key of one of these rules may stand in the body. */
export function needsBody(matched: Matched, facts: Facts): boolean {
  return matched.rule.key.includes('email-or-flow') && bodyKind(facts) !== undefined
}

/**
 * The e-mail (lower-cased) from a form or JSON body, else the flow id from the query or the body.
 * Multipart forms are not looked into. Returned as a keyed hash: neither logs nor counter keys ever hold the address.
 *
 * @param prefix the first bytes of the body, or undefined when nobody looked
 */
export function emailOrFlow(facts: Facts, prefix: Buffer | undefined, secret: Buffer): string | undefined {
  const field = fieldsOf(facts, prefix)
  const email = field('email')?.trim().toLowerCase()
  const flow = onlyOne(new URLSearchParams(facts.query).getAll('flow')) || field('flow')
  const value = email ? `email:${email}` : flow ? `flow:${flow}` : undefined
  return value && createHmac('sha256', secret).update(value).digest('base64url')
}

function fieldsOf(facts: Facts, prefix: Buffer | undefined): (name: string) => string | undefined {
  const kind = prefix && bodyKind(facts)
  if (prefix === undefined || kind === undefined) return () => undefined
  if (kind === 'form') {
    const form = new URLSearchParams(prefix.toString('utf8'))
    return name => onlyOne(form.getAll(name))
  }
  const json = parseObject(prefix.toString('utf8'))
  return name => {
    const value = Object.hasOwn(json, name) ? json[name] : undefined
    return typeof value === 'string' ? value : undefined
  }
}

/** Of a repeated field the upstream may read another value than we do: unless they agree, there is none. */
function onlyOne(values: readonly string[]): string | undefined {
  return values.every(value => value === values[0]) ? values[0] : undefined
}

function bodyKind(facts: Facts): 'form' | 'json' | undefined {
  const type = facts.header('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (type === 'application/x-www-form-urlencoded') return 'form'
  if (type === 'application/json') return 'json'
  return undefined
}

/** A body cut at the limit, or malformed, simply has no fields: refusing it is the upstream's business. */
function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
