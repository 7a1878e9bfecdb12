/** What guards a server or location of nginx: addresses, credentials, certificates, refusals. */
import { type AddressLine, deniedNetworks } from './networks.js'
import { isSendingAway } from './nginx-elsewhere.js'
import type { Directive } from './nginx-text.js'
import { isKnown } from './nginx-words.js'

/** How requests are guarded at some level of the file; each level inherits from the one around it. */
export interface Guards {
  /** `allow` and `deny`, of which a level has its own or those around it. */
  readonly access: readonly Directive[]
  /** Directives that ask for credentials, by name. */
  readonly asking: ReadonlyMap<string, Directive>
  /** What refuses whatever the rest says: `return 403`, an `if` with one, `internal`. */
  readonly refusing: readonly Directive[]
}

export const NO_GUARDS: Guards = { access: [], asking: new Map(), refusing: [] }

/** Directives that let only some requests through, if they are not `off`. */
const ASKING =
  /^(auth_(?!.*_(cache|status|header|set|type|claim|timeout|zone|leeway|user_file|key_file|key_request))|access_by_|(server_)?rewrite_by_(?!lua_no_postpone$)|js_access|modsecurity$|ssl_verify_client$|secure_link$|SecRulesEnabled$|app_protect_enable$|perl_access|testcookie$|ModSecurityEnabled$)/
const isAsking = (name: string): boolean => ASKING.test(name) || !isKnown(name)
const REFUSAL = /^(4\d\d|5\d\d)$/

/** True for directives that this file reads, so that nobody else reports them. */
export const isGuard = (name: string): boolean =>
  isAsking(name) ||
  /^(allow|deny|satisfy|internal|include$|limit_except|return|valid_referers|secure_link_|ssl_reject_handshake$|auth_\w+_(user_file|key_file|key_request)$)/.test(
    name,
  )

export function guardsOf(block: readonly Directive[], outer: Guards): Guards {
  const access = block.filter(({ name }) => name === 'allow' || name === 'deny')
  const asking = new Map(outer.asking)
  for (const one of block) {
    if (!isAsking(one.name)) continue
    if (isOff(one)) asking.delete(one.name)
    else asking.set(one.name, one)
  }
  const refusing = block.filter(isRefusing)
  return {
    access: access.length > 0 ? access : outer.access,
    asking,
    refusing: [...outer.refusing, ...refusing],
  }
}

const isOff = ({ name, words }: Directive): boolean =>
  words[0] === 'off' || (name === 'ssl_verify_client' && words[0] !== 'on')

/** True for a directive that refuses some requests, or all. */
export function isRefusing(one: Directive): boolean {
  const { name, words, block = [] } = one
  // Nobody knows what is in a file that cannot be read.
  if (name === 'internal' || name === 'include') return true
  if (name === 'ssl_reject_handshake') return words[0] === 'on'
  if (name === 'return') return REFUSAL.test(words[0] ?? '')
  if (name === 'if')
    return (
      isSendingAway(one) ||
      block.some(inner => isRefusing(inner) || inner.name === 'deny' || isAsking(inner.name))
    )
  return name === 'limit_except' && block.length > 0
}

/** How a place is guarded, in words, and where that is written; undefined when anybody may enter. */
export function guardIn({ access, asking, refusing }: Guards): { what: string; at: Directive } | undefined {
  const [first] = [...refusing, ...asking.values()]
  const refused = access.find(({ name }) => name === 'deny')
  const whats = [
    ...(refused === undefined ? [] : [accessText(access)]),
    ...[...asking.values()].map(askingText),
    ...refusing.map(refusalText),
  ]
  const at = refused ?? first
  return at === undefined ? undefined : { what: [...new Set(whats)].slice(0, 4).join(', '), at }
}

function askingText({ name, words }: Directive): string {
  const value = words[0] === undefined ? '' : ` "${words[0]}"`
  return `behind ${name}${value}${isKnown(name) || ASKING.test(name) ? '' : ', which is not known and may refuse requests'}`
}

function accessText(access: readonly Directive[]): string {
  const of = (which: string): string[] =>
    access.flatMap(({ name, words: [word = ''] }) => (name === which ? [word] : []))
  const allowed = of('allow')
  if (!of('deny').includes('all')) return `closed to ${shortened(of('deny'))}`
  return allowed.length === 0 ? 'closed to everybody' : `closed to all but ${shortened(allowed)}`
}

const shortened = (words: readonly string[]): string =>
  words.length > 5 ? `${words.slice(0, 5).join(', ')}, …` : words.join(', ')

function refusalText(one: Directive): string {
  const { name, words } = one
  if (name === 'internal') return 'internal'
  if (name === 'include') return `with "include ${words.join(' ')}", which cannot be read`
  if (name === 'ssl_reject_handshake') return 'refused by ssl_reject_handshake'
  if (name === 'return') return `answered ${words[0]}`
  if (name === 'limit_except') return `limited to ${words.join(', ')} by limit_except`
  return `${isSendingAway(one) ? 'sent elsewhere' : 'refused'} by an "if ${words.join(' ')}"`
}

/** The lines of an address list. */
function addressLines({ access }: Guards): AddressLine[] {
  return access.map(({ name, words: [network = ''] }) => ({ allow: name === 'allow', network }))
}

/** The networks that one address list refuses everywhere; undefined when places have different ones, or none. */
export function networksDenied(places: readonly Guards[]): string[] | undefined {
  const [lines = [], ...others] = places.map(addressLines)
  if (lines.every(({ allow }) => allow)) return undefined
  const text = JSON.stringify(lines)
  if (others.some(one => JSON.stringify(one) !== text)) return undefined
  // With "satisfy any", credentials would do as well.
  if (places.some(({ asking }) => asking.size > 0)) return undefined
  return deniedNetworks(lines)
}
