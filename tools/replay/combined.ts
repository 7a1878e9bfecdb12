/**
 * Access logs in the common and combined formats of Apache and nginx, with or without the virtual host in front
 * (httpd.apache.org/docs/2.4/logs.html; nginx.org/en/docs/http/ngx_http_log_module.html).
 */

import { type Format, trafficOfRequest } from './traffic.js'

const LINE = /^([^[\]"]{1,600}) \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)" (\d{3})(?: |$)/
const REQUEST = /^([A-Z]{1,30}) (\S+)(?: HTTP\/\d(?:\.\d)?)?$/
const TIME = /^(\d{2})\/(\w{3})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** @param host the host of requests whose lines name none */
export function combined(host: string | undefined): Format {
  return {
    name: 'combined',
    title: 'an access log in the common or combined format',
    facts: new Set(host === undefined ? (['client'] as const) : (['client', 'host'] as const)),
    read(line) {
      const [, who, time, request, status] = LINE.exec(line) ?? []
      if (who === undefined || time === undefined || request === undefined) return undefined
      const at = timeOf(time)
      if (at === undefined) return { trouble: 'broken', reason: `"${time}" is not a time` }
      // The virtual host, if there is one, comes before the address.
      const words = who.split(' ')
      const [client, , user] = words.slice(-3)
      const [, method = '', target = ''] = REQUEST.exec(request) ?? []
      return trafficOfRequest({
        at,
        // What is not an HTTP request was answered 400, and is refused here too.
        method: method === '' ? 'GET' : method,
        target,
        host: words.length > 3 ? words[0] : host,
        client,
        status: Number(status),
        authenticated: user !== undefined && user !== '-' ? true : undefined,
      })
    },
  }
}

function timeOf(text: string): number | undefined {
  const [, day, month, year, hours, minutes, seconds, sign, offsetHours, offsetMinutes] =
    TIME.exec(text) ?? []
  const index = MONTHS.indexOf(month ?? '')
  if (index < 0) return undefined
  const local = Date.UTC(Number(year), index, Number(day), Number(hours), Number(minutes), Number(seconds))
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000
  return sign === '-' ? local + offset : local - offset
}
