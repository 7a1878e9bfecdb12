import { Type } from 'typebox'
import { hastenAll } from '../events/courier.js'
import { queueOf } from '../events/queue.js'
import { isOwed, webhookOf, webhooksOf } from '../events/webhook.js'
import {
  type DeadLetterView,
  deadLetterSchema,
  replayedSchema,
  type WebhookEventView,
  webhookEventSchema,
} from '../schemas/events.js'
import { listOf, refTo } from '../schemas/parts.js'
import type { DeadLetter, LogEntry } from '../store/event-contract.js'
import { endpoint, pageQuery, scopeQuery } from './describe.js'
import { readOneDirectory } from './events.js'
import { HttpError, param, type RouteParts, resource, type Server } from './http.js'
import { listOfScope, readScope, withDeleted } from './paging.js'

const tag = 'Events'
const listQuery = { ...scopeQuery, ...pageQuery }
const path = ['id']

/** The log of webhook messages, and dead letters with their replay. */
export function addWebhookLog(server: Server, parts: RouteParts): void {
  const { store, courier } = parts
  const lookup = withDeleted(store)
  resource(server, '/events', {
    GET: endpoint(
      {
        tag,
        summary: 'List the webhook-event log, newest first',
        description:
          'Of directories with `log_webhook_events`. Entries are kept for `DSYNC_WEBHOOK_LOGS_TTL`.',
        query: listQuery,
        data: listOf(webhookEventSchema),
        paged: true,
      },
      listOfScope(parts, store.webhookLog, viewLogEntry, entry => entry),
    ),
    DELETE: endpoint(
      { tag, summary: 'Delete the webhook-event log', query: scopeQuery, data: Type.Null() },
      async request => {
        await store.deleteWebhookLog(await readScope(request, store))
      },
    ),
  })
  resource(server, '/events/:id', {
    GET: endpoint(
      { tag, summary: 'Read an entry of the webhook-event log', path, data: refTo(webhookEventSchema) },
      async request => {
        const entry = await store.webhookLogEntry(param(request, 'id'))
        if (!entry) throw new HttpError(404, 'There is no webhook event with this id in the log.')
        return viewLogEntry(entry)
      },
    ),
  })

  resource(server, '/dead-letters', {
    GET: endpoint(
      {
        tag,
        summary: 'List events that were given up, newest first',
        description:
          'They are kept for 30 days. Of a removed directory only `dsync.deleted` may be among them.',
        query: listQuery,
        data: listOf(deadLetterSchema),
        paged: true,
      },
      listOfScope(
        { ...parts, store: lookup },
        store.deadLetters,
        viewDeadLetter,
        ({ failed: created, id }) => ({ created, id }),
      ),
    ),
  })
  resource(server, '/dead-letters/replay', {
    POST: endpoint(
      {
        tag,
        summary: "Replay a directory's dead letters",
        description:
          'Each is sent once more, in order; events that wait for their next attempt are tried now as well. Those of a removed webhook stay.',
        query: scopeQuery,
        data: replayedSchema,
      },
      async request => {
        const directory = await readOneDirectory(request, lookup)
        const counts = webhooksOf(directory).map(({ id: webhookId, since: after = 0 }) =>
          store.replay(directory.id, { webhookId, after }),
        )
        const replaying = (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
        hastenAll(courier, directory)
        return { replaying }
      },
    ),
  })
  resource(server, '/dead-letters/:id/replay', {
    POST: endpoint({ tag, summary: 'Replay a dead letter', path, data: replayedSchema }, async request => {
      const letter = await store.deadLetter(param(request, 'id'))
      if (!letter) throw noDeadLetter()
      const { id, directoryId, webhookId } = letter
      const directory = await lookup.directory(directoryId)
      const webhook = directory && webhookOf(directory, webhookId)
      if (directory && !(webhook && isOwed(webhook, letter))) {
        throw new HttpError(409, 'The webhook of this dead letter was removed: there is nowhere to send it.')
      }
      const replaying = await store.replay(directoryId, { id })
      if (replaying === 0) throw noDeadLetter()
      courier.hasten(queueOf(directoryId, webhookId))
      return { replaying }
    }),
  })
  resource(server, '/dead-letters/:id', {
    DELETE: endpoint({ tag, summary: 'Delete a dead letter', path, data: Type.Null() }, async request => {
      if (!(await store.deleteDeadLetter(param(request, 'id')))) throw noDeadLetter()
    }),
  })
}

const noDeadLetter = (): HttpError => new HttpError(404, 'There is no dead letter with this id.')

function viewLogEntry({ id, directoryId, webhookId, tenant, product, ...entry }: LogEntry): WebhookEventView {
  return {
    ...{ id, directory_id: directoryId, tenant, product, webhook_id: webhookId },
    webhook_endpoint: entry.endpoint,
    created_at: entry.created,
    status_code: entry.status,
    delivered: entry.delivered,
    attempts: entry.attempts,
    error: entry.problem,
    payload: JSON.parse(entry.payload),
  }
}

function viewDeadLetter({
  id,
  directoryId,
  webhookId,
  tenant,
  product,
  ...letter
}: DeadLetter): DeadLetterView {
  return {
    ...{ id, directory_id: directoryId, tenant, product, webhook_id: webhookId },
    failed_at: letter.failed,
    attempts: letter.attempts,
    error: letter.problem,
    replaying: letter.replay,
    payload: JSON.parse(letter.body),
  }
}
