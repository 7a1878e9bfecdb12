/** What a counter is counted by: the parts of a rule's key, joined so that no two keys can be mistaken for one another. */
import { createHash } from 'node:crypto'
import { KEY_SPACE } from '../redis-keys.js'
import type { Facts, KeyPart, Project, Rule } from '../types.js'

/** A request as far as keys need it. */
export interface Keyed {
  readonly facts: Facts
  readonly project: Project
  /** The matched pattern's text. */
  readonly route: string
  /** Keyed hash of the e-mail, or the flow id, once it is known. */
  readonly emailOrFlow: string | undefined
}

const LONGEST_KEY = 200
/** What the keys of rules begin with whose key lacks the project. */
const WITHOUT_PROJECT = `${KEY_SPACE}*:`

/**
 * The full counter key of a rule, such as `sluice:1:{acme}:e:in-flight:identities-write:22:/admin/identities/{id}`.
 * The hash tag is the project, so all counters of a project live in one Redis Cluster slot; a key without the project is
 * its own tag, so clients spread over the cluster. Report-only rules have a key space of their own. The rule's kind and id
 * stand in it, the policy's revision does not: an edit elsewhere resets nothing. What a path or a header holds may be
 * an e-mail or a credential: hashes stand for them. They need no secret, so gateways that share a Redis share these rules
 * even when they share nothing else.
 *
 * @returns undefined when a part is absent and the rule does not share one counter between such requests
 */
export function counterKey(rule: Rule, request: Keyed): string | undefined {
  let tag = ''
  let rest = ''
  for (const part of rule.key) {
    const value = keyValue(part, request)
    if (value === undefined && rule.missing !== 'shared') return undefined
    if (part === 'project') tag = request.project.id
    else rest += value === undefined ? ':-' : `:${value.length}:${value}`
  }
  const space = rule.mode === 'enforce' ? 'e' : 'r'
  if (rest.length > LONGEST_KEY) rest = `:${hash(rest)}`
  const name = `${rule.kind}:${rule.id}${rest}`
  return tag === '' ? `${WITHOUT_PROJECT}{${name}}:${space}` : `${KEY_SPACE}{${tag}}:${space}:${name}`
}

/** True for the counter keys of rules whose key lacks the project. */
export function isWithoutProject(key: string): boolean {
  return key.startsWith(WITHOUT_PROJECT)
}

/** True for the counter keys of report-only rules. A plugin may have put something behind the key. */
export function isReportOnlyKey(key: string): boolean {
  // A project's id has no brace, but the values inside a tag without a project may.
  const end = isWithoutProject(key) ? key.lastIndexOf('}') : key.indexOf('}')
  const space = key.slice(end + 1, end + 4)
  return end !== -1 && (space === ':r' || space === ':r:')
}

/**
 * The parts of a rule's key with their values, as an explanation may show them: what may be a credential or an address of
 * a person is only said to be there. Undefined means absent.
 */
export function shownParts(rule: Rule, request: Keyed): { part: KeyPart; value: string | undefined }[] {
  return rule.key.map(part => {
    const value = partValue(part, request)
    const isSecret = part === 'email-or-flow' || part.startsWith('header:')
    return { part, value: value !== undefined && isSecret ? '(hashed)' : value }
  })
}

/** The value of one part, as it may stand in a store. */
function keyValue(part: KeyPart, request: Keyed): string | undefined {
  const value = partValue(part, request)
  if (value === undefined || (part !== 'full-path' && !part.startsWith('header:'))) return value
  return hash(`${part}:${value}`)
}

/** The values of one request by key part; undefined means absent. An empty value counts as absent. */
function partValue(part: KeyPart, { facts, project, route, emailOrFlow }: Keyed): string | undefined {
  switch (part) {
    case 'project':
      return project.id
    case 'path':
      return route.slice(route.indexOf('/'))
    case 'full-path': {
      const path = facts.foldedPath ?? facts.path
      return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    }
    case 'email-or-flow':
      return emailOrFlow
    case 'client-ip':
      return facts.network
    case 'ja3':
      return facts.ja3
    case 'ja4':
      return facts.ja4
    case 'auth':
      return facts.authenticated ? 'authenticated' : 'anonymous'
    case 'method':
      return facts.method
    default:
      return facts.header(part.slice('header:'.length)) || undefined
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
