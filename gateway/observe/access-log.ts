/** Observer: writes access records to the log, and limits their number when everything fails at once. */
import type { Observer } from '../plugin.js'
import type { Finished, Log } from '../types.js'
import { accessRecord, type UnreadRequest, unreadRecord } from './access-record.js'
import { LINES_PER_SECOND, LineBudget } from './line-budget.js'
import type { Redactor } from './redact.js'

/** Which requests are logged: none, those that failed (a 5xx, or a response that broke off), or all. */
export type LoggedRequests = 'off' | 'errors' | 'all'

export interface AccessLog extends Observer {
  /** The listener refused something before there was a request. */
  unread(refused: UnreadRequest): void
}

const SERVER_ERRORS = 500

/**
 * Per second at most 100 failures with the same status and upstream are written, then one line with the number of those
 * dropped. With `all` every request is written, without a limit.
 */
export function accessLog(requests: LoggedRequests, redactor: Redactor, log: Log): AccessLog | undefined {
  if (requests === 'off') return undefined
  const all = requests === 'all'
  const budget = new LineBudget((sort, dropped) => {
    const [status, upstream] = sort.split(' ', 2)
    const fields = { status: Number(status), upstream, dropped, per_second: LINES_PER_SECOND }
    log.warn(fields, 'requests dropped from the log')
  })
  const wants = (upstream: string, status: number) => all || budget.spend(`${status} ${upstream}`)
  return {
    finished(event) {
      if (hasFailed(event)) {
        if (wants(event.upstream, event.status)) log.warn(accessRecord(event, redactor), 'request')
      } else if (all) log.info(accessRecord(event, redactor), 'request')
    },
    unread(refused) {
      const record = unreadRecord(refused)
      if (record.status < SERVER_ERRORS) {
        if (all) log.info(record, 'request')
      } else if (wants('', record.status)) log.warn(record, 'request')
    },
    close: async () => budget.close(),
  }
}

/** A client that disconnects is not a failure. */
function hasFailed({ status, error }: Finished): boolean {
  return status >= SERVER_ERRORS || error === 'answer-cut'
}
