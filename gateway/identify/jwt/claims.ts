/** From the claims of a token to a project. Pure. */
import type { Project, Tools } from '../../plugin.js'
import { namedProjects } from '../named-project.js'
import type { Claims } from './token.js'

export interface ClaimSettings {
  /** Names of claims, or paths such as `realm/id`. */
  readonly project: string
  readonly plan?: string | undefined
  readonly environment?: string | undefined
  readonly scopes: readonly string[]
  /** `known`: only projects of projects.yaml. */
  readonly projects: 'any' | 'known'
}

/** The project that a token is for, with its scopes; a word or two why there is none. */
export function projectReader(
  { project, plan, environment, scopes, projects }: ClaimSettings,
  tools: Tools,
): (claims: Claims) => Project | string {
  const named = namedProjects(projects, tools)
  const optional = (claims: Claims, name: string | undefined) =>
    name === undefined ? undefined : claimOf(claims, name)
  return claims => {
    const column = { plan: optional(claims, plan), environment: optional(claims, environment) }
    const found = named(claimOf(claims, project), column)
    return typeof found === 'string'
      ? found
      : { ...found, scopes: scopes.flatMap(name => wordsOf(claimOf(claims, name))) }
  }
}

/** A claim by its whole name, or else by a path: names of claims may be URLs. */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split('/')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[part]
  }
  return value
}

/** `scope` is a text of words (RFC 8693 section 4.2), in some issuers' tokens a list, as roles are. */
function wordsOf(value: unknown): string[] {
  const words =
    typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? (value as unknown[]) : []
  return words.filter((word): word is string => typeof word === 'string' && word !== '')
}

/**
 * True if an object of this JSON text has a name twice: readers differ in which value they keep (RFC 7519 section 4). Linear;
 * anything for a text that is no JSON.
 */
export function hasDuplicateName(text: string): boolean {
  const open: (Set<string> | undefined)[] = []
  let last: string | undefined
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (char === '"') {
      let end = i + 1
      while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1
      last = text.slice(i, end + 1)
      i = end
    } else if (char === ':') {
      const names = open.at(-1)
      const name = last === undefined ? undefined : nameOf(last)
      if (name === undefined || names === undefined) continue
      if (names.has(name)) return true
      names.add(name)
    } else if (char === '{') open.push(new Set())
    else if (char === '[') open.push(undefined)
    else if (char === '}' || char === ']') open.pop()
  }
  return false
}

function nameOf(quoted: string): string | undefined {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  try {
    return JSON.parse(quoted) as string
  } catch {
    return undefined
  }
}
