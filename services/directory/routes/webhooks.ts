import { Type } from 'typebox'
import type { DirectoryCore } from '../core.js'
import { testMessage } from '../events/message.js'
import { queueOf } from '../events/queue.js'
import type { TargetRules } from '../events/target.js'
import {
  viewWebhook,
  type WebhookView,
  webhookOf,
  webhooksOf,
  withoutWebhook,
  withWebhook,
} from '../events/webhook.js'
import { type Directory, type EventName, eventNames, type NamedWebhook } from '../model.js'
import { listOf, refTo } from '../schemas/parts.js'
import {
  type NewWebhook,
  newWebhookSchema,
  type WebhookChange,
  type WebhookTrial,
  webhookChangeSchema,
  webhookSchema,
  webhookTrialSchema,
} from '../schemas/webhooks.js'
import { endpoint } from './describe.js'
import { param, type Request, resource, type Server } from './http.js'
import { findDirectory } from './paging.js'
import { changeWebhook, noWebhook, readWebhook } from './webhook-input.js'

export type WebhookParts = Pick<
  DirectoryCore,
  'store' | 'box' | 'courier' | 'directories' | 'call' | 'settings'
> & {
  readonly webhookTargets: TargetRules
}

/** A single webhook as the management API shows it; the values of its headers are not shown. */
export interface NamedWebhookView extends WebhookView {
  id: string
  /** Names of the events that are sent there; all of them unless the webhook is limited to some. */
  events: readonly EventName[]
  header_names: string[]
  disabled: boolean
}

/** The webhooks of a directory. All methods throw HttpError. */
export interface Webhooks {
  list(directoryId: string): Promise<NamedWebhookView[]>
  create(directoryId: string, body: NewWebhook): Promise<NamedWebhookView>
  get(directoryId: string, webhookId: string): Promise<NamedWebhookView>
  update(directoryId: string, webhookId: string, body: WebhookChange): Promise<NamedWebhookView>
  delete(directoryId: string, webhookId: string): Promise<void>
  /** Calls it once with a `webhook.test` event and waits for the response. */
  test(directoryId: string, webhookId: string): Promise<WebhookTrial>
}

export function createWebhooks(parts: WebhookParts): Webhooks {
  const { store, box, courier, directories, call, settings } = parts

  const view = (directoryId: string, webhook: NamedWebhook): NamedWebhookView => {
    const { id, events = eventNames, headers = [], disabled = false } = webhook
    const header_names = headers.map(({ name }) => name)
    return { id, ...viewWebhook(box, directoryId, id, webhook), events, header_names, disabled }
  }
  const find = async (directoryId: string, webhookId: string) => {
    const directory = await findDirectory(store, directoryId)
    const webhook = webhookOf(directory, webhookId)
    if (!webhook) throw noWebhook()
    return { directory, webhook }
  }
  const change = async (directoryId: string, next: (directory: Directory) => Directory): Promise<void> => {
    if (!(await directories.change(directoryId, next))) await findDirectory(store, directoryId)
  }
  const set = async (directoryId: string, next: (directory: Directory) => NamedWebhook) => {
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

  return {
    async list(directoryId) {
      const directory = await findDirectory(store, directoryId)
      return webhooksOf(directory).map(webhook => view(directoryId, webhook))
    },
    create: (directoryId, body) => set(directoryId, directory => readWebhook(directory, body, parts)),
    get: async (directoryId, webhookId) => view(directoryId, (await find(directoryId, webhookId)).webhook),
    update: (directoryId, webhookId, body) =>
      set(directoryId, directory => changeWebhook(directory, webhookId, body, parts)),
    async delete(directoryId, webhookId) {
      await change(directoryId, directory => {
        if (!webhookOf(directory, webhookId)) throw noWebhook()
        return withoutWebhook(directory, webhookId)
      })
      // Makes the courier drop the events that wait for it.
      courier.hasten(queueOf(directoryId, webhookId))
    },
    async test(directoryId, webhookId) {
      const { directory, webhook } = await find(directoryId, webhookId)
      const message = testMessage(directory, settings.webhookBatch?.size)
      const { status = null, problem = null } = await call(directoryId, webhook, message)
      return { delivered: problem === null, status_code: status, error: problem }
    },
  }
}

const tag = 'Webhooks'
const data = refTo(webhookSchema)

/** The webhooks of a directory. Part of the management API. */
export function addWebhooks(server: Server, parts: WebhookParts): void {
  const webhooks = createWebhooks(parts)
  const ids = (request: Request): [string, string] => [
    param(request, 'directoryId'),
    param(request, 'webhookId'),
  ]
  const path = ['directoryId', 'webhookId']

  resource(server, '/:directoryId/webhooks', {
    GET: endpoint(
      { tag, summary: "List a directory's webhooks", path: ['directoryId'], data: listOf(webhookSchema) },
      async request => ({ data: await webhooks.list(param(request, 'directoryId')), error: null }),
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
      async (request, reply) => {
        const made = await webhooks.create(param(request, 'directoryId'), request.body as NewWebhook)
        reply.code(201)
        return { data: made, error: null }
      },
    ),
  })
  resource(server, '/:directoryId/webhooks/:webhookId', {
    GET: endpoint({ tag, summary: 'Read a webhook', path, data }, async request => ({
      data: await webhooks.get(...ids(request)),
      error: null,
    })),
    PATCH: endpoint(
      {
        tag,
        summary: 'Change a webhook, or switch it off or on',
        description: 'Fields that are not sent stay as they are. `headers` replaces all previous headers.',
        path,
        body: refTo(webhookChangeSchema),
        data,
      },
      async request => ({
        data: await webhooks.update(...ids(request), request.body as WebhookChange),
        error: null,
      }),
    ),
    DELETE: endpoint(
      { tag, summary: 'Remove a webhook and the events that wait for it', path, data: Type.Null() },
      async request => {
        await webhooks.delete(...ids(request))
        return { data: null, error: null }
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
      async request => ({ data: await webhooks.test(...ids(request)), error: null }),
    ),
  })
}
