import { GatewayError } from '../errors.js'
import { normalizePath, speltPath } from './path.js'

/** The parts of a request target (RFC 9112 section 3.2). */
export interface Target {
  /** In normal form; `*` for `OPTIONS *`. */
  readonly path: string
  /** `path` with escapes of sub-delimiters as they were sent, to be forwarded. */
  readonly spelt: string
  /** Raw query with its `?`, or ''. */
  readonly query: string
  /** Authority of an absolute-form target; it wins over Host. */
  readonly authority: string | undefined
}

const ABSOLUTE = /^https?:\/\/([^/?]*)([/?].*)?$/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
const FORBIDDEN_IN_QUERY = /[\x00-\x20#\x7f-\uffff]/
const OPTIONS_ALL: Target = { path: '*', spelt: '*', query: '', authority: undefined }

const NO_SLASH = 'The path does not begin with "/". Write it in front.'

/**
 * Splits a request target: origin-form, absolute-form, and `*` with OPTIONS; anything else is `bad-target`.
 * The authority of an absolute-form target names a virtual host, never the server to connect to.
 */
export function parseTarget(method: string, url: string): Target {
  if (url[0] === '/') return split(url, undefined)
  if (url === '*' && method === 'OPTIONS') return OPTIONS_ALL
  const [, authority, rest = ''] = ABSOLUTE.exec(url) ?? []
  if (!authority) throw new GatewayError('bad-target', { detail: NO_SLASH })
  return split(rest[0] === '/' ? rest : `/${rest}`, authority)
}

function split(target: string, authority: string | undefined): Target {
  const mark = target.indexOf('?')
  const rawPath = mark === -1 ? target : target.slice(0, mark)
  const query = mark === -1 ? '' : target.slice(mark)
  if (FORBIDDEN_IN_QUERY.test(query)) throw new GatewayError('bad-target')
  const path = normalizePath(rawPath)
  return { path, spelt: speltPath(rawPath, path), query, authority }
}
