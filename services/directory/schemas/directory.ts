import { type Static, Type } from 'typebox'
import {
  type Changeable,
  linkSeconds,
  maxNameLength,
  maxUrlLength,
  minKeyBytes,
  minSecretLength,
  overlapSeconds,
} from '../limits.js'
import { directoryTypes } from '../model.js'
import { closed, component, flag, moment, orNull, text, whole, word } from './parts.js'

const counts = <const Name extends string>(names: readonly Name[]) =>
  Type.Object(
    Object.fromEntries(names.map(name => [name, whole()])) as Record<Name, ReturnType<typeof whole>>,
  )

export const pullSchema = Type.Object({
  status: word(['running', 'complete', 'incomplete', 'refused', 'failed', 'interrupted'], {
    description: '`interrupted`: the process that pulled is gone',
  }),
  started_at: moment(),
  finished_at: orNull(moment()),
  error: orNull(text()),
  users: counts(['created', 'updated', 'deleted']),
  groups: counts(['created', 'updated', 'deleted']),
  memberships: counts(['added', 'removed']),
})
export type PullView = Static<typeof pullSchema>

export const directorySchema = component(
  'Directory',
  Type.Object({
    id: text(),
    name: text(),
    tenant: text(),
    product: text(),
    type: word(directoryTypes),
    log_webhook_events: flag(),
    deactivated: flag(),
    scim: Type.Object({
      path: text(),
      secret: text('The bearer token of the identity provider'),
      endpoint: text('The SCIM base address of the identity provider'),
      old_secret_valid_until: Type.Optional(moment('After a rotation')),
    }),
    webhook: Type.Object({
      endpoint: text('Receives events by POST; empty: no webhook'),
      secret: text('Signs the events'),
      old_secret_valid_until: Type.Optional(moment('After a change of the secret: until then both sign')),
    }),
    external_domain: Type.Optional(text('Of type external only. Empty: all domains of the account')),
    external_access_token: Type.Optional(text('Of type external only. Empty: not connected')),
    external_refresh_token: Type.Optional(text('Of type external only')),
    external_sync: Type.Optional(
      orNull(
        Type.Object(pullSchema.properties, {
          description: 'Of type external only. Result of the last pull; null before the first',
        }),
      ),
    ),
  }),
)
/**
 * A directory as the management API and the library show it (the spec's "Directory (connection)"), with its secrets in
 * clear.
 */
export type DirectoryView = Static<typeof directorySchema>

/** A tenant or product. */
export const identifierSchema = Type.String({
  minLength: 1,
  maxLength: maxNameLength,
  pattern: '^[^:\\u0000-\\u001f\\u007f-\\u009f]*$',
  description: 'Without the character ":"; not blank',
})

const secretRule = `At least ${minSecretLength} characters; \`whsec_\` is followed by at least ${minKeyBytes} bytes in base64`
/** A field that may be absent, null or empty. */
const optional = (about: string, maxLength?: number) =>
  Type.Optional(
    orNull(Type.String({ description: about, ...(maxLength === undefined ? {} : { maxLength }) })),
  )

const changeable = {
  name: optional('Empty: not changed, or `scim-<tenant>-<product>`', maxNameLength),
  log_webhook_events: Type.Optional(flag()),
  deactivated: Type.Optional(flag()),
  webhook: Type.Optional(
    orNull(
      closed(
        {
          endpoint: optional('As webhook_url'),
          secret: optional('As webhook_secret'),
          old_secret_valid_until: Type.Optional(Type.Unknown({ description: 'As in answers; ignored' })),
        },
        { description: 'In place of `webhook_url` and `webhook_secret`' },
      ),
    ),
  ),
  webhook_url: optional('A public https address; empty: no webhook', maxUrlLength),
  webhook_secret: optional(secretRule, maxNameLength),
  external_domain: optional('Of type external only: pulls users and groups of this domain'),
} satisfies Record<Changeable, unknown>

/** For a body with a new secret. */
export const overlapField = {
  overlap_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: overlapSeconds.longest,
      default: overlapSeconds.standard,
      description: 'How long the replaced secret stays valid; 0 ends all old ones at once',
    }),
  ),
}

export const newDirectorySchema = component(
  'NewDirectory',
  closed({
    ...changeable,
    tenant: identifierSchema,
    product: identifierSchema,
    type: Type.Optional(
      Type.Unsafe<(typeof directoryTypes)[number] | '' | null>({
        type: ['string', 'null'],
        enum: [...directoryTypes, '', null],
        default: 'generic-scim-v2',
      }),
    ),
  }),
)
export type NewDirectory = Static<typeof newDirectorySchema>

const asItIs = Type.Optional(Type.Unknown({ description: 'As it is, if sent' }))
const unchanged = { id: asItIs, tenant: asItIs, product: asItIs, type: asItIs }

export const directoryChangeSchema = component(
  'DirectoryChange',
  closed({ ...changeable, ...unchanged, ...overlapField }, { minProperties: 1 }),
)
/** The fields of a directory that may be changed; those not named stay as they are. */
export type DirectoryChange = Static<typeof directoryChangeSchema>

export const rotationSchema = closed(overlapField)
/** How long the replaced secret stays valid. */
export type SecretRotation = Static<typeof rotationSchema>

/** The body that makes a link. */
export const lifetimeOf = ({
  standard,
  shortest,
  longest,
}: Readonly<Record<'standard' | 'shortest' | 'longest', number>>) =>
  closed({
    lifetime_seconds: Type.Optional(Type.Integer({ minimum: shortest, maximum: longest, default: standard })),
  })
/** How long a link stays valid. */
export type LinkLifetime = Static<ReturnType<typeof lifetimeOf>>

export const newLinkSchema = lifetimeOf(linkSeconds)
export type NewConsentLink = LinkLifetime

export const linkSchema = Type.Object({ url: text('Shown once'), expires_at: moment() })
/** A one-time link to a consent; its token is shown once. */
export type ConsentLinkView = Static<typeof linkSchema>

const link = {
  id: text(),
  created_at: moment(),
  expires_at: moment(),
  token_shown_at: orNull(moment('When it showed the SCIM secret')),
}

export const setupLinkSchema = component('SetupLink', Type.Object(link))
/** A link to the page on which a customer's admin connects their provider. */
export type SetupLinkView = Static<typeof setupLinkSchema>

export const newSetupLinkSchema = component('NewSetupLink', Type.Object({ ...link, url: text('Shown once') }))
/** A new link with its URL, which is shown only this once. */
export type NewSetupLinkView = Static<typeof newSetupLinkSchema>
