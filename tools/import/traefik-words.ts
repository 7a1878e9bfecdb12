/** The words of Traefik's configuration that the import looks for, as its documentation writes them. */
import type { Migration } from './migration.js'
import type { Section } from './source.js'

const WORDS = new Map(
  [
    ...[
      'http',
      'tcp',
      'udp',
      'routers',
      'services',
      'middlewares',
      'rule',
      'service',
      'priority',
      'ruleSyntax',
    ],
    ...['entryPoints', 'address', 'forwardedHeaders', 'trustedIPs', 'insecure', 'proxyProtocol'],
    ...['tls', 'options', 'clientAuth', 'chain', 'allowedHosts', 'ipAllowList', 'ipWhiteList', 'sourceRange'],
    ...['loadBalancer', 'servers', 'url', 'passHostHeader', 'buffering', 'maxRequestBodyBytes'],
    ...['rateLimit', 'average', 'period', 'burst', 'inFlightReq', 'amount'],
    ...['sourceCriterion', 'requestHeaderName', 'requestHost', 'ipStrategy', 'depth', 'excludedIPs'],
  ].map(word => [word.toLowerCase(), word]),
)
/** Members of these have names that their author chose. */
const HOLDERS = ['routers', 'services', 'middlewares', 'options', 'entryPoints']

/** Traefik reads `Middlewares` as `middlewares`. Passed over, it would let through what a middleware guards. */
export function refuseOtherCase(section: Section, into: Migration, areNames = false): void {
  for (const [key, member] of section.members()) {
    const word = WORDS.get(key.toLowerCase())
    if (!areNames && word !== undefined && word !== key) {
      into.unreadable(section.at(key), `Traefik reads "${key}" as "${word}": write it so.`)
    }
    refuseOtherCase(member, into, !areNames && HOLDERS.includes(key))
  }
}

/** The name without the provider of these files: `limit@file` is `limit`. What others provide is not in the files. */
export const plain = (name: string): string => name.replace(/(?<=.)@file$/, '')

/** Traefik fills in what is between braces, whatever it stands for: a middleware, or a list of routers. */
export function refuseTemplate(text: string, file: string | undefined, into: Migration): void {
  const [before = '', ...others] = text.split('{{')
  if (others.length === 0) return
  const lines = before.split('\n')
  const at = { line: lines.length, col: (lines.at(-1) ?? '').length + 1, ...(file !== undefined && { file }) }
  into.unreadable(at, 'Templates ("{{") are not filled in. Give the file with what they stand for.')
}
