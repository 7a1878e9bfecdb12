import { ownerOf, queueOf } from '../../events/queue.js'
import {
  type Claim,
  type DeadLetter,
  type EventStore,
  type LogEntry,
  pruneBatch,
  type StoredEvent,
} from '../event-contract.js'
import { purgeDelivered } from './directories.js'
import {
  type DeadRow,
  deadColumns,
  eventColumns,
  type LogRow,
  logColumns,
  toDeadLetter,
  toLogEntry,
} from './event-tables.js'
import { page, put, type Sql, scoped } from './sql.js'

interface DeliveryRow {
  fence: number
  until: number
  attempts: number
  due: number
}

const dead = `SELECT ${deadColumns} FROM dead_letters`
const log = `SELECT ${logColumns} FROM webhook_log`

/** Lists the queues by stepping from one to the next along the key, however many events each one has. */
const queues = `WITH RECURSIVE step (queue) AS (
    SELECT min(directory_id) FROM event_queue UNION ALL
    SELECT (SELECT min(directory_id) FROM event_queue WHERE directory_id > step.queue)
    FROM step WHERE queue IS NOT NULL
  ), queues AS MATERIALIZED (SELECT queue FROM step WHERE queue IS NOT NULL)`

/** Events in the embedded database: claiming a delivery and reporting on it are one transaction each. */
export function createEventStore(sql: Sql): EventStore {
  const { run, all, one, together } = sql

  const stateOf = (queue: string): DeliveryRow =>
    one<DeliveryRow>('SELECT * FROM deliveries WHERE directory_id = ?', queue) ?? {
      ...{ fence: 0, until: 0, attempts: 0, due: 0 },
    }

  const saveState = (queue: string, { fence, until, attempts, due }: DeliveryRow): void => {
    const state = { fence, until, attempts, due }
    put(
      sql,
      'deliveries',
      { directory_id: queue, ...state },
      { key: 'directory_id', changes: Object.keys(state) },
    )
  }

  const claim: EventStore['claimDelivery'] = async (queue, { now, until, limit, fence, hasten }) =>
    together((): Claim => {
      const { directoryId, webhookId } = ownerOf(queue)
      const state = stateOf(queue)
      const own = state.fence === fence
      if (!own && state.until > now) return { kind: 'held' }
      const giveBack = (): void => {
        if (own) saveState(queue, { ...state, until: 0 })
      }
      const replays = all<DeadRow>(
        `${dead} WHERE directory_id = ? AND replay = 1 AND webhook_id = ?
         ORDER BY sequence LIMIT ?`,
        ...[directoryId, webhookId, limit],
      ).map(toDeadLetter)
      const waits = state.due > now && !hasten
      const events = all<StoredEvent>(
        `SELECT ${eventColumns} FROM event_queue JOIN events USING (sequence)
         WHERE event_queue.directory_id = ? AND events.directory_id = ? ORDER BY event_queue.sequence LIMIT ?`,
        ...[queue, directoryId, waits ? 1 : limit],
      )
      if (replays.length === 0 && (events.length === 0 || waits)) {
        giveBack()
        return events.length === 0 ? { kind: 'nothing' } : { kind: 'later', at: state.due }
      }
      const taken = { ...state, fence: own ? state.fence : state.fence + 1, until }
      saveState(queue, taken)
      const { attempts, due } = state
      return {
        kind: 'delivery',
        delivery: { fence: taken.fence, attempts, due, events: waits ? [] : events, replays },
      }
    })

  const report: EventStore['reportDelivery'] = async (queue, fence, done) =>
    together(() => {
      if (stateOf(queue).fence !== fence) return false
      const { delivered, attempts, due, until, dead = [], failedAgain = [], revived = [], log = [] } = done
      saveState(queue, { fence, attempts, due, until })
      if (delivered !== undefined) {
        run('DELETE FROM event_queue WHERE directory_id = ? AND sequence <= ?', queue, delivered)
      }
      for (const letter of dead) bury(letter)
      for (const { id, attempts, problem, failed } of failedAgain) {
        run(
          'UPDATE dead_letters SET attempts = ?, problem = ?, failed = ?, replay = 0 WHERE id = ?',
          ...[attempts, problem, failed, id],
        )
      }
      for (const id of revived) run('DELETE FROM dead_letters WHERE id = ?', id)
      for (const entry of log) note(entry)
      return true
    })

  const bury = ({ directoryId, webhookId, ...letter }: DeadLetter): void =>
    put(
      sql,
      'dead_letters',
      { ...letter, directory_id: directoryId, webhook_id: webhookId, replay: 0 },
      { key: 'id', changes: ['attempts', 'problem', 'failed', 'replay'] },
    )

  const note = ({ directoryId, webhookId, delivered, ...entry }: LogEntry): void =>
    put(
      sql,
      'webhook_log',
      { ...entry, directory_id: directoryId, webhook_id: webhookId, delivered: delivered ? 1 : 0 },
      { key: 'id', changes: ['endpoint', 'status', 'delivered', 'attempts', 'problem'] },
    )

  return {
    waitingEvents: async () => one<{ n: number }>('SELECT count(*) AS n FROM event_queue')?.n ?? 0,
    queuesWithEvents: async () => [
      ...new Set([
        ...all<{ queue: string }>(`${queues} SELECT queue FROM queues`).map(row => row.queue),
        ...all<Pick<DeadLetter, 'directoryId' | 'webhookId'>>(
          `SELECT DISTINCT directory_id AS directoryId, webhook_id AS webhookId
           FROM dead_letters WHERE replay = 1`,
        ).map(({ directoryId, webhookId }) => queueOf(directoryId, webhookId)),
      ]),
    ],
    claimDelivery: claim,
    reportDelivery: report,

    async feed(directoryId, after, limit) {
      const last = one<{ sequence: number }>('SELECT sequence FROM directories WHERE id = ?', directoryId)
      const events = all<StoredEvent>(
        `SELECT ${eventColumns} FROM events WHERE directory_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
        ...[directoryId, after, limit],
      )
      return { last: last?.sequence ?? 0, events }
    },

    deadLetters: async (scope, wanted) =>
      page<DeadRow>(sql, dead, scoped(scope), wanted, 'failed').map(toDeadLetter),
    async deadLetter(id) {
      const [row] = all<DeadRow>(`${dead} WHERE id = ?`, id)
      return row && toDeadLetter(row)
    },
    deleteDeadLetter: async id => run('DELETE FROM dead_letters WHERE id = ?', id) === 1,
    replay: async (directoryId, which) =>
      'id' in which
        ? run('UPDATE dead_letters SET replay = 1 WHERE directory_id = ? AND id = ?', directoryId, which.id)
        : run(
            `UPDATE dead_letters SET replay = 1
             WHERE directory_id = ? AND webhook_id = ? AND sequence > ?`,
            ...[directoryId, which.webhookId, which.after],
          ),

    webhookLog: async (scope, wanted) =>
      page<LogRow>(sql, log, scoped(scope), wanted, 'created').map(toLogEntry),
    async webhookLogEntry(id) {
      const [row] = all<LogRow>(`${log} WHERE id = ?`, id)
      return row && toLogEntry(row)
    },
    async deleteWebhookLog(scope) {
      const { where, values } = scoped(scope)
      run(`DELETE FROM webhook_log WHERE ${where}`, ...values)
    },

    pruneSome: async before =>
      together(() => {
        const log = run(
          'DELETE FROM webhook_log WHERE id IN (SELECT id FROM webhook_log WHERE created < ? LIMIT ?)',
          ...[before.log, pruneBatch],
        )
        const dead = run(
          'DELETE FROM dead_letters WHERE id IN (SELECT id FROM dead_letters WHERE failed < ? LIMIT ?)',
          ...[before.dead, pruneBatch],
        )
        const events = run(
          `${queues} DELETE FROM events WHERE (directory_id, sequence) IN (
             SELECT directory_id, sequence FROM events WHERE created < ? AND NOT EXISTS (
               SELECT 1 FROM queues CROSS JOIN event_queue AS queued ON queued.directory_id = queue
               WHERE (queue = events.directory_id OR queue LIKE events.directory_id || '.%')
               AND queued.sequence = events.sequence)
             ORDER BY created LIMIT ?)`,
          ...[before.events, pruneBatch],
        )
        purgeDelivered(sql)
        return Math.max(log, dead, events) === pruneBatch
      }),
  }
}
