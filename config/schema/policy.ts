/** The shapes of policy files: project-limits, and one kind for each limit plugin. */
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import { PROJECT_LIMITS } from '../words/bucket.js'
import {
  type CommonRuleKey,
  ENVIRONMENTS,
  KEY_PARTS,
  type KeyPart,
  MISSING,
  MODES,
  PLANS,
} from '../words/words.js'
import { BucketSchema } from './bucket.js'
import {
  Day,
  DeclaredWord,
  Name,
  NamedMap,
  Network,
  ON_STORE_ERROR_HELP,
  OnStoreError,
  Strict,
  Version,
  Word,
  when,
} from './fields.js'
import { Percent } from './percent.js'
import { QuotaSchema } from './quota.js'
import { RefuseSchema } from './refuse.js'

/** Key parts that a request may lack. */
const ABSENT_PART = '^(header:.*|ja3|ja4|email-or-flow)$'

export const Mode = Word(MODES, {
  default: 'enforce',
  description: 'enforce refuses requests over the limit; report-only lets them pass and logs them.',
})
const EnforceFor = Type.Optional(
  Percent({
    minimum: 0,
    maximum: 100,
    expected: 'a share from 0% to 100%, such as 25% or 0.5%',
    description:
      "With mode: enforce. Enforced for this share and report-only for the rest: of a rule's keys, or of the projects for a project-limits file. A larger share contains every smaller one.",
  }),
)
const Patterns = (description: string) =>
  Type.Array(
    Type.String({ minLength: 1, maxLength: 1024, description: '"[METHOD ]/path/{id}/*/**", or "*".' }),
    {
      minItems: 1,
      maxItems: 1000,
      description,
    },
  )
export const Since = Type.Optional(
  Day('Day from which the rule has had its mode. `sluice check` warns if it has been report-only for long.'),
)
const optionalOnStoreError = Type.Optional(
  OnStoreError({ description: `${ON_STORE_ERROR_HELP} The default is store.onError of gateway.yaml.` }),
)

const Selector = Strict({
  plans: Type.Optional(
    Type.Array(DeclaredWord({ description: 'A plan.', examples: [...PLANS] }), {
      minItems: 1,
      description: 'Default: every plan.',
    }),
  ),
  environments: Type.Optional(
    Type.Array(DeclaredWord({ description: 'An environment.', examples: [...ENVIRONMENTS] }), {
      minItems: 1,
      description: 'Default: every environment.',
    }),
  ),
})
const LimitRow = Strict({
  for: Type.Array(Selector, { minItems: 1, description: 'The plans and environments this row covers.' }),
  quotas: NamedMap(QuotaSchema, {
    description: 'Limits by bucket. A bucket left out here does not exist for this row.',
  }),
})

export const projectLimitsSchema = Strict({
  version: Version(),
  kind: Type.Literal(PROJECT_LIMITS, { description: 'What this file holds.' }),
  mode: Mode,
  enforceFor: EnforceFor,
  since: Since,
  onStoreError: optionalOnStoreError,
  buckets: NamedMap(BucketSchema, {
    description: 'Named groups of request patterns; a request falls into the most specific one.',
  }),
  limits: Type.Array(LimitRow, { minItems: 1, description: 'One row for each table of limits.' }),
})

const KeyPartEntry = Type.Unsafe<KeyPart>({
  type: 'string',
  ...when(
    { pattern: '^header:' },
    {
      pattern: "^header:[a-z0-9!#$%&'*+.^_`|~-]{1,128}$",
      expected: 'header: and a header name in lowercase, such as header:x-device',
    },
    { enum: [...KEY_PARTS, 'header:NAME'] },
  ),
})

const Words = <S extends TSchema>(what: string, item: S) =>
  Type.Optional(Type.Array(item, { minItems: 1, maxItems: 1000, uniqueItems: true, description: what }))

/** Names declared in other files; that they exist is checked once all files are read. */
const Declared = Type.String({ minLength: 1, maxLength: 128 })

const AUTHENTICATED = 'true, false or verified'

const When = Strict(
  {
    authenticated: Type.Optional(
      Type.Unsafe<boolean | 'verified'>({
        type: ['boolean', 'string'],
        expected: AUTHENTICATED,
        ...when({ type: 'boolean' }, {}, { enum: ['verified'], expected: AUTHENTICATED }),
        description:
          'true: a credential is present, which anybody can make up; false: none is; verified: an identifier has checked one.',
      }),
    ),
    projects: Words('Ids of projects.', Declared),
    plans: Words('Plans of the projects.', Declared),
    environments: Words('Environments of the projects.', Declared),
    networks: Words('Addresses of clients.', Network),
  },
  {
    minProperties: 1,
    expected: 'a map with authenticated, projects, plans, environments or networks',
    description: 'The rule applies only to requests that meet all of these conditions.',
  },
)

const commonProperties = {
  id: Name('Stable name of the rule: counters, logs and metrics go by it.'),
  match: Patterns(
    'Requests the rule applies to. GET, HEAD and OPTIONS are exempt without "reads: true", except for the GET that opens a WebSocket.',
  ),
  when: Type.Optional(When),
  reads: Type.Optional(
    Type.Boolean({
      description:
        'true: the rule also applies to GET, HEAD and OPTIONS. Default: only to other methods, and to the GET that opens a WebSocket.',
    }),
  ),
  key: Type.Array(KeyPartEntry, {
    minItems: 1,
    maxItems: 16,
    uniqueItems: true,
    description: 'What requests are counted by; those with equal parts share a counter.',
  }),
  mode: Mode,
  enforceFor: EnforceFor,
  since: Since,
  missing: Word(MISSING, {
    description:
      'When a part of the key is absent: skip the rule, count together with all others that lack it (shared), or refuse (deny).',
  }),
  onStoreError: optionalOnStoreError,
  refuse: Type.Optional(RefuseSchema),
} satisfies Record<CommonRuleKey, TSchema>

const OPTIONAL = new Set(['enforceFor', 'since', 'onStoreError', 'when', 'reads', 'refuse'])

/** The common keys of a rule together with those of its plugin. */
export type RuleEntry = Static<TObject<typeof commonProperties>> & { readonly [key: string]: unknown }
export interface RuleFile {
  readonly version: 1
  readonly kind: string
  readonly rules: readonly RuleEntry[]
}

/** A policy file whose rules are read by the limit plugin `kind`. */
export function ruleFileSchema(kind: string, pluginSchema: TSchema) {
  const own = pluginSchema as { properties?: TProperties; required?: readonly string[] }
  const { missing, ...always } = commonProperties
  const isOwn = (key: string) => !Object.hasOwn(commonProperties, key)
  const ownProperties = Object.entries(own.properties ?? {}).filter(([key]) => isOwn(key))
  const rule = Strict({ ...always, missing, ...Object.fromEntries(ownProperties) })
  const ownRequired = (own.required ?? []).filter(isOwn)
  return Strict({
    version: Version(),
    kind: Type.Literal(kind, { description: 'What this file holds.' }),
    rules: Type.Array(
      Type.Unsafe<RuleEntry>({
        ...rule,
        required: [...ownRequired, ...Object.keys(always).filter(key => !OPTIONAL.has(key))],
        // No silent fallback: a rule whose key may lack a part must say what happens then.
        if: {
          properties: { key: { contains: { type: 'string', pattern: ABSENT_PART } } },
          required: ['key'],
        },
        // biome-ignore lint/suspicious/noThenProperty: the JSON Schema keyword.
        then: {
          required: ['missing'],
          whyRequired:
            'A request may lack a part of this key, so the rule must say "missing: skip", "shared" or "deny".',
        },
        else: { properties: { missing: { default: 'skip' } } },
      }),
      { minItems: 1, description: 'The rules of this file.' },
    ),
  })
}

export type ProjectLimitsDocument = Static<typeof projectLimitsSchema>
