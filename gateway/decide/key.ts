/** Counter keys: the parts of a rule's key, joined so that two different keys cannot be mistaken for one another. */
import { createHash } from 'node:crypto'
import { BY_CLIENT } from '../../config/words/words.js'
import type { Calls, Facts, KeyPart, Project, Rule } from '../types.js'
import { KEY_SPACE } from './redis/key-space.js'

export interface Keyed {
  readonly facts: Facts
  readonly project: Project
  /** The matched pattern's text. */
  readonly route: string
  /** Keyed hash of the e-mail or flow id, if the rule counts by it and the request names one. */
  readonly emailOrFlow: string | undefined
  /** The calls in the body, if the rule counts by them. */
  readonly calls?: Calls | undefined
}

const LONGEST_KEY = 200
/** Most keys cached for one rule: identifiers may make up any number of projects. */
const MOST_CACHED = 10_000
/** Prefix of the counter keys of rules that do not count by project. */
const WITHOUT_PROJECT = `${KEY_SPACE}*:`

/**
 * The full counter key of a rule, such as `sluice:1:{acme}:e:in-flight:identities-write:22:/admin/identities/{id}`. The
 * hash tag is the project, so all counters of a project live in one Redis Cluster slot; a key without the project is
 * its own tag, so clients spread over the cluster. Report-only rules have a key space of their own. The key contains
 * the rule's kind and id but not the policy's revision: editing another rule resets nothing. Paths and headers may hold
 * an e-mail address or a credential, so they are hashed; without a secret, so that gateways that share nothing but a
 * Redis share these counters, too.
 *
 * @returns undefined when a part is absent and the rule does not share one counter between requests without it
 */
export function counterKey(rule: Rule, request: Keyed): string | undefined {
  return rule.key.length === 1 && rule.key[0] === 'project'
    ? projectKey(rule, request.project)
    : requestKey(rule, request)
}

/** True for the counter keys of rules whose key lacks the project. */
export function isWithoutProject(key: string): boolean {
  return key.startsWith(WITHOUT_PROJECT)
}

/** True for the counter keys of report-only rules. */
export function isReportOnlyKey(key: string): boolean {
  // A project's id contains no brace, but the values in a tag without a project may.
  return isWithoutProject(key) ? key.endsWith('}:r') : key.startsWith('}:r:', key.indexOf('}'))
}

/** Prefix of the counter keys of unknown callers that are counted by project. */
const UNKNOWN_PROJECT = `${KEY_SPACE}{${BY_CLIENT}`

/**
 * Which rule counts by this counter key: its space, kind and id. Unknown callers count apart from configured projects,
 * as there may be any number of them.
 */
export function ruleOfKey(key: string): string {
  const inTag = isWithoutProject(key)
  const tagEnd = key.indexOf('}')
  if (tagEnd < 0) return ''
  const from = inTag ? WITHOUT_PROJECT.length + 1 : tagEnd + 2
  const kindEnd = key.indexOf(':', inTag ? from : from + 2)
  const idEnd = kindEnd < 0 ? -1 : key.indexOf(':', kindEnd + 1)
  const name = key.slice(from, idEnd < 0 ? undefined : idEnd)
  if (inTag) return `${key.at(-1)}:${name}`
  return key.startsWith(UNKNOWN_PROJECT) ? `?${name}` : name
}

/**
 * The parts of a rule's key with their values, as an explanation may show them: of possible credentials and e-mail
 * addresses, only that they are there. Undefined means absent.
 */
export function shownParts(rule: Rule, request: Keyed): { part: KeyPart; value: string | undefined }[] {
  return rule.key.map(part => {
    const value = partValue(part, request)
    const isSecret = part === 'email-or-flow' || part.startsWith('header:')
    return { part, value: value !== undefined && isSecret ? '(hashed)' : value }
  })
}

/** The key of a rule that counts by the project alone. Cached, because every new string has to be hashed again. */
function projectKey(rule: Rule, { id }: Project): string {
  const made = rule.made ?? {}
  made.keys ??= new Map()
  let key = made.keys.get(id)
  if (key === undefined) {
    key = joined(rule, id, '')
    if (made.keys.size < MOST_CACHED) made.keys.set(id, key)
  }
  return key
}

function requestKey(rule: Rule, request: Keyed): string | undefined {
  let tag = ''
  let rest = ''
  for (const part of rule.key) {
    const value = keyValue(part, request)
    if (value === undefined && rule.missing !== 'shared') return undefined
    if (part === 'project') tag = request.project.id
    else rest += value === undefined ? ':-' : `:${value.length}:${value}`
  }
  return joined(rule, tag, rest)
}

/**
 * Joins with `join`, which makes one flat string: a concatenation would stay in the counter map as a chain of strings,
 * with three times the memory.
 *
 * @param tag the project's id; '' if the key lacks the project
 */
function joined(rule: Rule, tag: string, rest: string): string {
  const space = rule.mode === 'enforce' ? 'e' : 'r'
  const parts = rest.length > LONGEST_KEY ? `:${hash(rest)}` : rest
  const name = [rule.kind, ':', rule.id, parts]
  const text =
    tag === ''
      ? [WITHOUT_PROJECT, '{', ...name, '}:', space]
      : [KEY_SPACE, '{', tag, '}:', space, ':', ...name]
  return text.join('')
}

/** Parts of which a client writes the value, besides headers. */
const HASHED: readonly KeyPart[] = ['full-path', 'json-rpc']

/** The value of one part as it may be stored: paths, headers and methods of JSON-RPC are hashed. */
function keyValue(part: KeyPart, request: Keyed): string | undefined {
  const value = partValue(part, request)
  if (value === undefined || !(HASHED.includes(part) || part.startsWith('header:'))) return value
  return hash(`${part}:${value}`)
}

/** The request's value for one part; undefined means absent. An empty header counts as absent. */
function partValue(part: KeyPart, { facts, project, route, emailOrFlow, calls }: Keyed): string | undefined {
  switch (part) {
    case 'project':
      return project.id
    case 'path':
      return route.slice(route.indexOf('/'))
    case 'full-path': {
      const path = facts.foldedPath ?? facts.path
      return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    }
    case 'host':
      return facts.host
    case 'email-or-flow':
      return emailOrFlow
    case 'json-rpc':
      return calls?.name
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
