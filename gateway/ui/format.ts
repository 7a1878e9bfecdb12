/** Formats numbers, durations and times for the page. Times are UTC, as in the logs. */

/** A rate per second, with as many digits as are significant: `0`, `0.3`, `12.4`, `1,240`. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return '0'
  if (perSecond < 0.1) return '<0.1'
  return perSecond < 100 ? perSecond.toFixed(1) : count(Math.round(perSecond))
}

const COUNT = new Intl.NumberFormat('en')

export function count(number: number): string {
  return COUNT.format(number)
}

/** `800 ms`, `12 s`, `4 min`, `3 h 20 min`, `2 d 5 h`. */
export function length(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return minutes < 10 ? pair(minutes, 'min', seconds % 60, 's') : `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'min')
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

function pair(large: number, one: string, small: number, other: string): string {
  return small === 0 ? `${large} ${one}` : `${large} ${one} ${small} ${other}`
}

/** `03:14:22`; preceded by the date if it is not the day of `now`. */
export function time(moment: string | number, now: number = Date.now()): string {
  const date = new Date(moment)
  if (Number.isNaN(date.getTime())) return '?'
  const [day, clock = ''] = date.toISOString().split('T')
  const hours = clock.slice(0, 8)
  return new Date(now).toISOString().startsWith(`${day}T`) ? hours : `${day} ${hours}`
}

/** `03:14:22 (8 min ago)`, or `(in 8 min)`. */
export function moment(at: string, now: number = Date.now()): string {
  const ms = now - Date.parse(at)
  return `${time(at, now)} (${ms < 0 ? `in ${length(-ms)}` : `${length(ms)} ago`})`
}

export function bytes(number: number): string {
  return `${count(Math.round(number / 1024 / 1024))} MiB`
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

/** The first characters of a revision, as operators compare them with logs. */
export function shortRevision(revision: string): string {
  return revision.replace(/^sha256:/, '').slice(0, 12)
}

/** `1 rule`, `2 rules`. */
export function several(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`
}
