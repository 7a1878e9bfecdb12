/** What every client is told to ask, and how what it got is compared. */
import { BIG_BYTES } from './upstream.mjs'

const get = (path, more = {}) => ({ method: 'GET', path, ...more })
const send = (method, upload, flags = '', path = '/echo') => ({ method, path, upload, flags })

/** By name. `upload`: bytes to send; `flags`: follow (redirects), chunked, expect; interim, trailers: what comes; `headers`: `name: value`. */
export const CASES = {
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

/** One connection serves them all. */
export const REUSE = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`${i}`, get('/length')]))

/** For the clients of other languages: a line for each case. */
export const linesOf = cases =>
  Object.entries(cases)
    .map(([name, { method, path, upload = '-', flags = '', headers = [] }]) =>
      [name, method, path, upload, flags, headers.join('|')].join('\t'),
    )
    .join('\n')

/** Of one connection alone, or how a proxy frames the same body, or what the gateway says of limits. */
const NOT_COMPARED =
  /^(connection|keep-alive|transfer-encoding|trailer|ratelimit|ratelimit-policy|x-ratelimit-.*|access-control-expose-headers)$/

/** What those clients print, by case: texts that must be equal. */
export function resultsOf(stdout) {
  const results = {}
  for (const line of stdout.split('\n').filter(Boolean)) {
    const [name, status, bytes, sum, fields = ''] = line.split('\t')
    results[name] = bytes === undefined ? status : resultText(status, bytes, sum, fields.split('\x01'))
  }
  return results
}

/** One text for an answer; `fields` are lines such as `Name: value`. */
export function resultText(status, bytes, sum, fields) {
  const lines = fields
    .map(line => line.replace(/^(\(behind\) )?[^:]*/, name => name.toLowerCase()))
    .filter(line => line !== '' && !NOT_COMPARED.test(line.slice(0, line.indexOf(':'))))
    // Left out towards clients of HTTP/2, some of which would wait for it.
    .filter(line => status !== '304' || !line.startsWith('content-length:'))
    .sort()
  return `${status}, ${bytes} bytes ${sum.slice(0, 8)}, ${lines.join(' | ')}`
}
