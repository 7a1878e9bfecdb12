import type { Paging, Where } from '../routes/describe.js'
import type {
  ConsentLinkView,
  DirectoryChange,
  DirectoryView,
  NewConsentLink,
  NewDirectory,
  NewSetupLinkView,
  SecretRotation,
  SetupLinkView,
} from '../schemas/directory.js'
import type {
  DeadLetterView,
  DirectoryEvent,
  Replayed,
  Started,
  WebhookEventView,
} from '../schemas/events.js'
import type { FullGroupView, GroupView, MemberView, UserView } from '../schemas/people.js'
import type { ListedWebhook, NewWebhook, WebhookChange, WebhookTrial } from '../schemas/webhooks.js'
import type { CallManagement, LibraryAnswer, Listed } from './calls.js'

/** A page of the events feed. `cursor` is always present: continue from it, now or later. */
export type Feed = LibraryAnswer<DirectoryEvent[]> & { readonly cursor?: string }

/** The management API as methods, each named after what it does to what (docs/in-process.md has the table). */
export function managementOf(call: CallManagement) {
  const get = <Result>(path: string[], query?: object): Promise<Result> =>
    call('GET', path, { query }) as Promise<Result>
  const post = <Data>(
    path: string[],
    sent?: { query?: object; body?: unknown },
  ): Promise<LibraryAnswer<Data>> => call('POST', path, sent)
  const end = (path: string[], query?: object): Promise<LibraryAnswer<null>> =>
    call('DELETE', path, { query })

  return {
    directories: {
      create: (fields: NewDirectory) => post<DirectoryView>([], { body: fields }),
      get: (id: string) => get<LibraryAnswer<DirectoryView>>([id]),
      list: (of: { tenant: string; product: string } & Paging) => get<Listed<DirectoryView>>([], of),
      /** Regardless of their tenant. */
      listOfProduct: (of: { product: string } & Paging) => get<Listed<DirectoryView>>(['product'], of),
      /** Fields that are not named stay as they are. */
      update: (id: string, change: DirectoryChange): Promise<LibraryAnswer<DirectoryView>> =>
        call('PATCH', [id], { body: change }),
      /** Also deletes all its users, groups and events. */
      delete: (id: string) => end([id]),
      /** The old secret stays valid for a day, unless `overlap_seconds` says otherwise. */
      rotateScimSecret: (id: string, rotation: SecretRotation = {}) =>
        post<DirectoryView>([id, 'scim-secret'], { body: rotation }),
    },
    users: {
      /** `email` also matches the userName; `group` limits the list to its members. */
      list: (of: Where & Paging & { email?: string; group?: string }) => get<Listed<UserView>>(['users'], of),
      get: (id: string, of: Where) => get<LibraryAnswer<UserView>>(['users', id], of),
    },
    groups: {
      list: (of: Where & Paging & { name?: string }) => get<Listed<GroupView>>(['groups'], of),
      /** With its members. */
      get: (id: string, of: Where) => get<LibraryAnswer<FullGroupView>>(['groups', id], of),
      members: (id: string, of: Where & Paging) => get<Listed<MemberView>>(['groups', id, 'members'], of),
    },
    events: {
      /** All events of the last 30 days in order, delivered to a webhook or not. */
      feed: (of: Where & { cursor?: string; pageLimit?: number }) => get<Feed>(['feed'], of),
      /** Delivers what is queued for webhooks; returns at once. For batch mode, to be called on a schedule. */
      process: () => post<Started>(['cron', 'process-events']),
    },
    webhooks: {
      list: (directoryId: string) => get<LibraryAnswer<ListedWebhook[]>>([directoryId, 'webhooks']),
      create: (directoryId: string, fields: NewWebhook) =>
        post<ListedWebhook>([directoryId, 'webhooks'], { body: fields }),
      get: (directoryId: string, id: string) =>
        get<LibraryAnswer<ListedWebhook>>([directoryId, 'webhooks', id]),
      /** Fields that are not named stay as they are. */
      update: (
        directoryId: string,
        id: string,
        change: WebhookChange,
      ): Promise<LibraryAnswer<ListedWebhook>> =>
        call('PATCH', [directoryId, 'webhooks', id], { body: change }),
      delete: (directoryId: string, id: string) => end([directoryId, 'webhooks', id]),
      /** Sends a test event now and returns the result. */
      test: (directoryId: string, id: string) => post<WebhookTrial>([directoryId, 'webhooks', id, 'test']),
    },
    webhookLogs: {
      list: (of: Where & Paging) => get<Listed<WebhookEventView>>(['events'], of),
      get: (id: string) => get<LibraryAnswer<WebhookEventView>>(['events', id]),
      deleteAll: (of: Where) => end(['events'], of),
    },
    deadLetters: {
      list: (of: Where & Paging) => get<Listed<DeadLetterView>>(['dead-letters'], of),
      delete: (id: string) => end(['dead-letters', id]),
      replay: (id: string) => post<Replayed>(['dead-letters', id, 'replay']),
      replayAll: (of: Where) => post<Replayed>(['dead-letters', 'replay'], { query: of }),
    },
    consentLinks: {
      /** A one-time link to the consent pages, which `start` serves. */
      create: (directoryId: string, link: NewConsentLink = {}) =>
        post<ConsentLinkView>([directoryId, 'consent-link'], { body: link }),
      deleteAll: (directoryId: string) => end([directoryId, 'consent-link']),
    },
    setupLinks: {
      /** A link to the page on which a customer's admin connects their provider; `start` serves it. */
      create: (directoryId: string, link: NewConsentLink = {}) =>
        post<NewSetupLinkView>([directoryId, 'setup-links'], { body: link }),
      list: (directoryId: string) => get<LibraryAnswer<SetupLinkView[]>>([directoryId, 'setup-links']),
      delete: (directoryId: string, id: string) => end([directoryId, 'setup-links', id]),
      deleteAll: (directoryId: string) => end([directoryId, 'setup-links']),
    },
    pulls: {
      /** Starts to pull and returns at once; `sync` waits instead and passes on the events. */
      begin: (of: { directoryId?: string; allowDeletions?: boolean } = {}) =>
        post<Started>(['cron', 'sync-external'], { query: of }),
    },
  }
}

/** The management API as methods for the embedding process. */
export type Management = ReturnType<typeof managementOf>
