import { Type } from 'typebox'
import { testMessage } from '../events/message.js'
import { queueOf } from '../events/queue.js'
import { viewWebhook, webhookOf, webhooksOf, withoutWebhook, withWebhook } from '../events/webhook.js'
import { type Directory, eventNames, type NamedWebhook } from '../model.js'
import { listOf, refTo } from '../schemas/parts.js'
import {
  type ListedWebhook,
  type NewWebhook,
  newWebhookSchema,
  type WebhookChange,
  type WebhookTrial,
  webhookChangeSchema,
  webhookSchema,
  webhookTrialSchema,
} from '../schemas/webhooks.js'
import { endpoint } from './describe.js'
import { param, type Request, type RouteParts, resource, type Server } from './http.js'
import { findDirectory } from './paging.js'
import { changeWebhook, noWebhook, readWebhook } from './webhook-input.js'

const tag = 'Webhooks'
const data = refTo(webhookSchema)
const path = ['directoryId', 'webhookId']

/** The webhooks of a directory. Part of the management API. */
export function addWebhooks(server: Server, parts: RouteParts): void {
  const { store, box, courier, directories, call, settings } = parts

  const directoryOf = (request: Request): string => param(request, 'directoryId')
  const webhookIdOf = (request: Request): string => param(request, 'webhookId')
  /** The values of its headers are not shown. */
  const view = (directoryId: string, webhook: NamedWebhook): ListedWebhook => {
    const { id, events = eventNames, headers = [], disabled = false } = webhook
    const header_names = headers.map(({ name }) => name)
    return { id, ...viewWebhook(box, directoryId, id, webhook), events: [...events], header_names, disabled }
  }
  const find = async (request: Request) => {
    const directory = await findDirectory(store, directoryOf(request))
    const webhook = webhookOf(directory, webhookIdOf(request))
    if (!webhook) throw noWebhook()
    return { directory, webhook }
  }
  const change = async (directoryId: string, next: (directory: Directory) => Directory): Promise<void> => {
    if (!(await directories.change(directoryId, next))) await findDirectory(store, directoryId)
  }
  const save = async (request: Request, next: (directory: Directory) => NamedWebhook) => {
    const directoryId = directoryOf(request)
    let webhook: NamedWebhook | undefined
    await change(directoryId, directory => {
      webhook = next(directory)
      return withWebhook(directory, webhook)
    })
    if (!webhook) throw noWebhook()
    // Failed events may succeed with the changed webhook.
    courier.hasten(queueOf(directoryId, webhook.id))
    return view(directoryId, webhook)
  }

  resource(server, '/:directoryId/webhooks', {
    GET: endpoint(
      { tag, summary: "List a directory's webhooks", path: ['directoryId'], data: listOf(webhookSchema) },
      async request => {
        const directory = await findDirectory(store, directoryOf(request))
        return webhooksOf(directory).map(webhook => view(directory.id, webhook))
      },
    ),
    POST: endpoint(
      {
        tag,
        summary: 'Add a webhook',
        description: 'It receives events from then on. Without a `secret`, one is generated.',
        path: ['directoryId'],
        body: refTo(newWebhookSchema),
        data,
        status: 201,
      },
      request => save(request, directory => readWebhook(directory, request.body as NewWebhook, parts)),
    ),
  })
  resource(server, '/:directoryId/webhooks/:webhookId', {
    GET: endpoint({ tag, summary: 'Read a webhook', path, data }, async request =>
      view(directoryOf(request), (await find(request)).webhook),
    ),
    PATCH: endpoint(
      {
        tag,
        summary: 'Change a webhook, or switch it off or on',
        description: 'Fields that are not sent stay as they are. `headers` replaces all previous headers.',
        path,
        body: refTo(webhookChangeSchema),
        data,
      },
      request =>
        save(request, directory =>
          changeWebhook(directory, webhookIdOf(request), request.body as WebhookChange, parts),
        ),
    ),
    DELETE: endpoint(
      { tag, summary: 'Remove a webhook and the events that wait for it', path, data: Type.Null() },
      async request => {
        const [directoryId, id] = [directoryOf(request), webhookIdOf(request)]
        await change(directoryId, directory => {
          if (!webhookOf(directory, id)) throw noWebhook()
          return withoutWebhook(directory, id)
        })
        // Makes the courier drop the events that wait for it.
        courier.hasten(queueOf(directoryId, id))
      },
    ),
  })
  resource(server, '/:directoryId/webhooks/:webhookId/test', {
    POST: endpoint(
      {
        tag,
        summary: 'Send a test event',
        description:
          'Sends the webhook one `webhook.test` event, even if it is switched off, and returns the result.',
        path,
        data: refTo(webhookTrialSchema),
      },
      async (request): Promise<WebhookTrial> => {
        const { directory, webhook } = await find(request)
        const message = testMessage(directory, settings.webhookBatch?.size)
        const { status = null, problem = null } = await call(directory.id, webhook, message)
        return { delivered: problem === null, status_code: status, error: problem }
      },
    ),
  })
}
