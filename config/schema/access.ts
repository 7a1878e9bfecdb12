/** The shape of policy files of kind access: who is denied, and who is exempt from every limit. */
import { type Static, Type } from 'typebox'
import { ACCESS_ACTIONS } from '../words/words.js'
import { Name, Strict, Version, Word } from './fields.js'
import { Mode, Since } from './policy.js'

/** The policy kind whose entries are evaluated before any rule. */
export const ACCESS = 'access'

const MOST_PLACES = 10_000
const BESIDE = 'left out beside "networks": write two entries'
const EITHER = 'a map with either "networks" or "projects"'

const AccessRule = Strict(
  {
    id: Name('Stable name of the entry: logs and metrics go by it.'),
    networks: Type.Optional(
      Type.Array(
        Type.String({
          format: 'cidr',
          maxLength: 64,
          expected: 'an address or network such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32',
        }),
        {
          minItems: 1,
          maxItems: MOST_PLACES,
          description: 'Client addresses, behind trusted proxies; the longest network wins.',
        },
      ),
    ),
    projects: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
        minItems: 1,
        maxItems: MOST_PLACES,
        description:
          'Ids of projects; host:NAME for unknown callers of that host. Networks come before projects.',
      }),
    ),
    action: Word(ACCESS_ACTIONS, {
      description: 'deny answers 403. exempt skips all buckets, slots and meters; overload protection stays.',
    }),
    until: Type.Optional(
      Type.String({
        format: 'day-or-instant',
        maxLength: 64,
        expected:
          'a day such as 2026-12-31, which counts to its end by UTC, or a moment such as 2026-12-31T18:00:00Z',
        description:
          'When it expires: a day (until its end, UTC) or a time as in RFC 3339. After that it is ignored.',
      }),
    ),
    mode: Mode,
    since: Since,
  },
  { minProperties: 1 },
)

export const accessSchema = Strict({
  version: Version(),
  kind: Type.Literal(ACCESS, { description: 'What this file holds.' }),
  rules: Type.Array(
    Type.Unsafe<Static<typeof AccessRule>>({
      ...AccessRule,
      if: { properties: { networks: {} }, required: ['networks'] },
      // biome-ignore lint/suspicious/noThenProperty: the JSON Schema keyword.
      then: {
        properties: { projects: { not: {}, expected: BESIDE, description: 'Not beside networks.' } },
      },
      else: { required: ['projects'], whyRequired: `Must be ${EITHER}.` },
    }),
    { minItems: 1, description: 'The entries of this file.' },
  ),
})

export type AccessDocument = Static<typeof accessSchema>
