/** The base paths that `servers` define (OpenAPI 3.1, 'Server Object'). */
import type { Path } from '../../config/problem.js'
import type { Node } from './group.js'

export type Report = (path: Path, message: string, atKey?: boolean) => void

/** The nearest list applies: that of the operation, its path or the document. Variables take their defaults. */
export function basesOf(holders: readonly (readonly [Node, Path])[], report: Report): readonly string[] {
  const [holder, at] = holders.find(([{ servers }]) => Array.isArray(servers) && servers.length > 0) ?? []
  if (holder === undefined || at === undefined) return ['']
  const known = basesOfList.get(holder)
  if (known !== undefined) return known
  const bases = (holder.servers as unknown[]).map((server, i) => {
    const { url, variables } = nodeOf(server)
    const filled = String(url).replace(/\{([^{}]+)\}/g, (whole, name: string) => {
      const { default: fallback } = nodeOf(nodeOf(variables)[name])
      return fallback === undefined ? whole : String(fallback)
    })
    const unfilled = /\{[^{}]+\}/.exec(filled)?.[0]
    if (unfilled === undefined && URL.canParse(filled, 'http://any')) {
      return new URL(filled, 'http://any').pathname.replace(/\/$/, '')
    }
    const fault = unfilled === undefined ? 'Not an address' : `The variable ${unfilled} has no default`
    report([...at, 'servers', i], `${fault}: its path was taken to be "/".`)
    return ''
  })
  const distinct = [...new Set(bases)]
  basesOfList.set(holder, distinct)
  return distinct
}

/** Cached so that the faults of a list that applies to many operations are reported once. */
const basesOfList = new WeakMap<Node, readonly string[]>()

/** The members of an object; nothing for other values. */
export function nodeOf(value: unknown): Node {
  return typeof value === 'object' && value !== null ? (value as Node) : {}
}
