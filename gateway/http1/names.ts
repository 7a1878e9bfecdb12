/** Field names in lower case, without allocating a string for common names. */

/** The names that most requests and responses consist of. */
export const COMMON_NAMES: readonly string[] = [
  'accept accept-encoding accept-language accept-ranges access-control-allow-credentials',
  'access-control-allow-headers access-control-allow-methods access-control-allow-origin',
  'access-control-expose-headers access-control-max-age access-control-request-headers',
  'access-control-request-method age allow alt-svc authorization cache-control cdn-loop',
  'cf-connecting-ip cf-ipcountry cf-ray connection content-disposition content-encoding content-language',
  'content-length content-location content-range content-security-policy content-type cookie cookie2 date',
  'dnt etag expect expires forwarded from host idempotency-key if-match if-modified-since if-none-match',
  'if-range if-unmodified-since keep-alive last-modified link location max-forwards nel origin',
  'permissions-policy pragma priority proxy-authenticate proxy-authorization proxy-connection',
  'ratelimit ratelimit-policy range referer referrer-policy report-to retry-after sec-ch-ua',
  'sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user',
  'sec-websocket-accept sec-websocket-extensions sec-websocket-key sec-websocket-protocol',
  'sec-websocket-version server server-timing set-cookie strict-transport-security te trailer traceparent',
  'tracestate transfer-encoding true-client-ip upgrade upgrade-insecure-requests user-agent vary via',
  'www-authenticate x-amzn-trace-id x-api-key x-b3-sampled x-b3-spanid x-b3-traceid',
  'x-content-type-options x-correlation-id x-forwarded-for x-forwarded-host x-forwarded-port',
  'x-forwarded-proto x-frame-options x-powered-by x-ratelimit-limit x-ratelimit-remaining',
  'x-ratelimit-reset x-real-ip x-request-id x-requested-with x-xss-protection',
].flatMap(line => line.split(' '))

/** Keyed by the usual spellings: `content-type`, `Content-Type`. Never grows: names come from untrusted peers. */
const KNOWN: ReadonlyMap<string, string> = new Map(
  COMMON_NAMES.flatMap(name => [
    [name, name],
    [name.replace(/(?:^|-)[a-z]/g, letter => letter.toUpperCase()), name],
  ]),
)

/** `name` in lower case. */
export function lowerName(name: string): string {
  return KNOWN.get(name) ?? name.toLowerCase()
}
