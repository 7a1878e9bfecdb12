/** The requests that every client makes, and how their results are compared. */
import { BIG_BYTES } from './upstream.js'

/** One request, and what the client has to do with it. */
export interface Case {
  readonly method: string
  readonly path: string
  /** Bytes to send. */
  readonly upload?: number
  /** `follow` (redirects), `chunked` and `expect` for the request, `interim` and `trailers` for what the response has. */
  readonly flags?: string
  /** Each `name: value`. */
  readonly headers?: readonly string[]
}
export type Cases = Readonly<Record<string, Case>>
/** By case: a response as a text to compare. */
export type Results = Record<string, string>

const get = (path: string, more: Partial<Case> = {}): Case => ({ method: 'GET', path, ...more })
const send = (method: string, upload: number, flags = '', path = '/echo'): Case => ({
  method,
  path,
  upload,
  flags,
})

export const CASES: Cases = {
  length: get('/length'),
  query: get('/echo?a=b%20c&d'),
  chunked: get('/chunked'),
  'till the end': get('/close'),
  'after that': get('/length'),
  'status 204': get('/empty'),
  'status 304': get('/not-modified', { headers: ['If-None-Match: "a"'] }),
  'empty body': get('/no-length'),
  HEAD: { method: 'HEAD', path: '/length' },
  'HEAD, chunked': { method: 'HEAD', path: '/chunked' },
  'HEAD, big': { method: 'HEAD', path: '/big' },
  gzip: get('/gzip'),
  trailers: get('/trailers', { flags: 'trailers', headers: ['TE: trailers'] }),
  redirect: get('/redirect'),
  'redirect, followed': get('/redirect', { flags: 'follow' }),
  'redirect with a body': send('POST', 1_000, 'follow', '/redirect-with-body'),
  range: get('/range', { headers: ['Range: bytes=2-5'] }),
  cookies: get('/cookies', { headers: ['Cookie: a=1; b=2'] }),
  'status 103': get('/early-hints', { flags: 'interim' }),
  'status 503': get('/error'),
  'status 299': get('/unknown-status'),
  'large answer': get('/big'),
  'fields of ours': get('/echo', { headers: ['X-Own: a, b', 'Accept-Language: de;q=0.5'] }),
  POST: send('POST', 10),
  'POST, chunked': send('POST', 100_000, 'chunked'),
  'POST, Expect': send('POST', 100_000, 'expect'),
  'PUT, large': send('PUT', BIG_BYTES),
  'PUT, large, chunked': send('PUT', BIG_BYTES, 'chunked'),
  'POST, nothing': send('POST', 0),
  DELETE: { method: 'DELETE', path: '/echo' },
  'DELETE with a body': send('DELETE', 10),
  PATCH: send('PATCH', 10),
  OPTIONS: { method: 'OPTIONS', path: '/echo' },
  'at the end': get('/length'),
}

/** All of these fit on one connection. */
export const REUSE: Cases = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`${i}`, get('/length')]))

/** The cases for the clients in other languages, a line for each. */
export const linesOf = (cases: Cases): string =>
  Object.entries(cases)
    .map(([name, { method, path, upload = '-', flags = '', headers = [] }]) =>
      [name, method, path, upload, flags, headers.join('|')].join('\t'),
    )
    .join('\n')

/** Fields of one connection, fields about how a proxy frames the body, and the gateway's own fields. */
const NOT_COMPARED =
  /^(connection|keep-alive|transfer-encoding|trailer|ratelimit|ratelimit-policy|x-ratelimit-.*|x-request-id|access-control-expose-headers)$/

/** Results that those clients print, by case, as texts to compare. */
export function resultsOf(stdout: string): Results {
  const results: Results = {}
  for (const line of stdout.split('\n').filter(Boolean)) {
    const [name = '', status = '', bytes, sum = '', fields = ''] = line.split('\t')
    results[name] = bytes === undefined ? status : resultText(status, bytes, sum, fields.split('\x01'))
  }
  return results
}

/** One text for a response; `fields` are lines such as `Name: value`. */
export function resultText(status: string, bytes: string, sum: string, fields: readonly string[]): string {
  const lines = fields
    .map(line => line.replace(/^(\(behind\) )?[^:]*/, name => name.toLowerCase()))
    .filter(line => line !== '' && !NOT_COMPARED.test(line.slice(0, line.indexOf(':'))))
    // The gateway omits it towards clients of HTTP/2, some of which would wait for a body.
    .filter(line => status !== '304' || !line.startsWith('content-length:'))
    // Nor is a length that is the right one: the gateway may know it where the upstream has sent chunks.
    .filter(line => line !== `content-length: ${bytes}`)
    .sort()
  return `${status}, ${bytes} bytes ${sum.slice(0, 8)}, ${lines.join(' | ')}`
}
