import type { Request } from './http.js'

const hostPattern = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/**
 * The `{base_url}` of responses: the setting, else what the gateway in front reports about the client's request
 * (X-Forwarded-Proto and -Host, which it sets from trusted facts), else the Host header.
 */
export function baseUrlOf(request: Request, setting: string | undefined): string {
  if (setting !== undefined) return setting
  const forwarded = request.headers['x-forwarded-host']
  const host = [forwarded, request.headers.host].find(
    candidate => typeof candidate === 'string' && hostPattern.test(candidate),
  )
  const protocol = request.headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return `${protocol}://${host ?? 'localhost'}`
}
