/** Reads a JSON Web Key Set (RFC 7517) from its URL, or from a file. */
import { readFileSync, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { checkedMark } from '../credential-file.js'
import { isPublicAddress, publicLookup } from './public-address.js'
import { publicKeys, type SkippedKey } from './public-keys.js'
import type { Keys } from './token.js'

/** A set of the largest issuers has a few dozen keys, and some 50 kB. */
const MOST_BYTES = 1024 * 1024
const MOST_KEYS = 1000
const DEADLINE_MS = 5000

/** A set as it was read. */
export interface ReadSet {
  /** The keys for signatures, of which it may have none. */
  readonly set: Keys
  readonly skipped: readonly SkippedKey[]
}

export interface KeySource {
  /** Rejects, with a sentence, if there is no set. */
  read(): Promise<ReadSet>
  /** True when it may have changed since the last `read`; absent where only reading it can tell. */
  hasChanged?(): Promise<boolean>
}

/** Why a set cannot be at this address, as a sentence; undefined if it can. */
export function sourceFault(jwks: string, allowPrivate: boolean): string | undefined {
  if (!isUrl(jwks)) return undefined
  if (!URL.canParse(jwks)) return 'The address of the key set is not a URL.'
  const { protocol, hostname, username, password } = new URL(jwks)
  if (username !== '' || password !== '') {
    return 'The URL of a key set must not contain a user or a password. Key sets are public.'
  }
  if (protocol !== 'https:' && protocol !== 'http:') {
    return `A key set is not fetched by ${protocol.slice(0, -1)}: write an https address, or the path of a file.`
  }
  if (allowPrivate) return undefined
  if (protocol === 'http:')
    return 'A key set that comes by plain http can be replaced on its way: use https, or set allowPrivate.'
  if (isPublicAddress(hostname.replace(/^\[|\]$/g, '')) === false || /^(.*\.)?localhost\.?$/.test(hostname)) {
    return `${hostname} is not a public address; allowPrivate: true allows it.`
  }
  return undefined
}

/** @param jwks a URL, or the path of a file */
export function keySource(jwks: string, allowPrivate: boolean): KeySource {
  if (!isUrl(jwks)) return fileSource(jwks)
  const url = new URL(jwks)
  const lookup = allowPrivate ? undefined : publicLookup
  return { read: async () => keySetFrom(await download(url, lookup)) }
}

function fileSource(file: string): KeySource {
  let mark = ''
  const markNow = async () => checkedMark(await stat(file), MOST_BYTES)
  return {
    async read() {
      const found = await markNow()
      const text = await readFile(file, 'utf8')
      // Not before: a file that could not be read has still to be read.
      mark = found
      return keySetFrom(text)
    },
    hasChanged: async () => (await markNow()) !== mark,
  }
}

/** The text of a file. @throws an error of the file system, or a sentence */
export function textOfFile(file: string): string {
  checkedMark(statSync(file), MOST_BYTES)
  return readFileSync(file, 'utf8')
}

/** True for a URL, false for the path of a file. */
export function isUrl(jwks: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(jwks)
}

/** For logs: a query may hold a secret. */
export function nameOf(jwks: string): string {
  if (!isUrl(jwks)) return jwks
  const { protocol, host, pathname } = new URL(jwks)
  return `${protocol}//${host}${pathname}`
}

/** @throws a sentence if the text is no key set */
export function keySetFrom(text: string): ReadSet {
  if (text.length > MOST_BYTES) throw new Error(`a key set of more than ${MOST_BYTES} bytes`)
  let parsed: { keys?: unknown } | null
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new Error('it is not JSON')
  }
  const list: unknown = parsed?.keys
  if (!Array.isArray(list) || list.length > MOST_KEYS)
    throw new Error(`it is not a list of up to ${MOST_KEYS} "keys"`)
  const { keys, skipped } = publicKeys<Keys['keys'][number]>(list)
  return { set: { keys }, skipped }
}

/** Follows no redirect: it could lead to an address that was not checked. */
function download(url: URL, lookup: LookupFunction | undefined): Promise<string> {
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const headers = { accept: 'application/jwk-set+json, application/json', 'user-agent': 'sluice' }
    const asked = send(url, { signal, headers, agent: false, ...(lookup && { lookup }) }, answer => {
      if (answer.statusCode !== 200) {
        answer.destroy()
        reject(new Error(`status ${answer.statusCode}`))
        return
      }
      const chunks: Buffer[] = []
      let bytes = 0
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        chunks.push(chunk)
        if (bytes > MOST_BYTES) answer.destroy(new Error(`a key set of more than ${MOST_BYTES} bytes`))
      })
      answer.on('error', reject)
      answer.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    })
    const failed = (error: Error) =>
      reject(signal.aborted ? new Error(`no answer within ${DEADLINE_MS} ms`) : error)
    asked.on('error', failed).end()
  })
}
