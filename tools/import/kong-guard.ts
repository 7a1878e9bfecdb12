/** What guards a route of Kong: plugins that ask for something, and matchers that a route here cannot have. */
import type { KongPlugins } from './kong-plugins.js'
import type { AddressLine } from './networks.js'
import type { Section } from './source.js'

/** Plugins that ask for a key alone can be a rule of the whole gateway: requests of no consumer are refused. */
export const KEY_AUTH = 'key-auth'

/** The plugins that guard a route, of which the nearest of each kind applies. */
export function guardsAmong(plugins: readonly Section[], kong: KongPlugins): Section[] {
  const nearest = new Map<string, Section>()
  for (const plugin of plugins) {
    const name = plugin.text('name') ?? ''
    if (!nearest.has(name)) nearest.set(name, plugin)
  }
  return [...nearest.values()].filter(plugin => {
    if (plugin.text('name') === KEY_AUTH) return kong.anonymousOf(plugin) === undefined
    return !kong.isHarmless(plugin)
  })
}

/** A guard in words. */
export function guardText(plugin: Section): string {
  const name = plugin.text('name') ?? 'a plugin without a name'
  const config = plugin.section('config')
  if (name === 'ip-restriction') {
    const allowed = [...config.texts('allow'), ...config.texts('whitelist')]
    const denied = [...config.texts('deny'), ...config.texts('blacklist')]
    if (allowed.length > 0) return `closed to all but ${some(allowed)}`
    return `closed to ${some(denied)}`
  }
  if (name === 'acl') {
    const allowed = [...config.texts('allow'), ...config.texts('whitelist')]
    return allowed.length > 0 ? `for the groups ${some(allowed)} alone (acl)` : 'closed to some groups (acl)'
  }
  if (name === 'request-termination')
    return `answered ${config.text('status_code') ?? 503} by request-termination`
  return `behind ${name}`
}

/** The lines of an ip-restriction. */
export function linesOf(plugin: Section): AddressLine[] {
  const config = plugin.section('config')
  const of = (...keys: string[]): string[] => keys.flatMap(key => config.texts(key))
  const allowed = of('allow', 'whitelist')
  return [
    ...of('deny', 'blacklist').map(network => ({ allow: false, network })),
    ...allowed.map(network => ({ allow: true, network })),
    ...(allowed.length > 0 ? [{ allow: false, network: 'all' }] : []),
  ]
}

/** What of a route a request must have besides host, method and path; undefined when nothing. */
export function matchersOf(route: Section): string | undefined {
  const parts = ['headers', 'snis', 'sources', 'destinations', 'expression'].filter(key => key in route.node)
  const protocols = route.texts('protocols')
  const what = parts.map(key =>
    key === 'headers' ? `the header ${Object.keys(route.section(key).node).slice(0, 3).join(', ')}` : key,
  )
  if (protocols.length > 0 && !protocols.includes('http')) what.push(`the protocol ${protocols.join(' or ')}`)
  return what.length === 0 ? undefined : what.join(' and ')
}

const some = (words: readonly string[]): string =>
  words.length > 5 ? `${words.slice(0, 5).join(', ')}, …` : words.join(', ')
