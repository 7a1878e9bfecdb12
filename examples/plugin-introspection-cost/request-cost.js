/** Limit: each request costs units of a budget, more where it makes more work. Its name is the `kind` of its policy files. */
import { Duration, definePlugin, Type } from 'sluicegate'

const MOST = 1_000_000

const Cost = description => Type.Integer({ minimum: 1, maximum: 1000, description })

export const requestCost = definePlugin({
  name: 'request-cost',
  kind: 'limit',
  // Reading is what costs most here. Without this line GET, HEAD and OPTIONS would be exempt.
  limitsReads: true,
  // The keys of one rule, beside `id`, `match`, `key`, `mode` and the other common ones.
  schema: Type.Object({
    budget: Type.Object(
      {
        units: Type.Integer({ minimum: 1, maximum: MOST, description: 'Units that one key may spend.' }),
        per: Duration({ unit: '1s', description: 'In this time, which begins with the first request.' }),
      },
      { additionalProperties: false, description: 'How many units in which time.' },
    ),
    cost: Type.Integer({ default: 1, minimum: 1, maximum: 1000, description: 'Units of a plain request.' }),
    weights: Type.Array(
      Type.Object(
        {
          path: Type.String({ pattern: '^/', maxLength: 1024, expected: 'a path that begins with "/"' }),
          cost: Cost('Units of a request to this path or below it.'),
        },
        { additionalProperties: false },
      ),
      {
        default: [],
        maxItems: 100,
        description: 'Paths that cost more or less; the longest that fits counts.',
      },
    ),
    header: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9-]{1,64}$',
        description:
          'Header in which a trusted proxy says what the request costs; from others it means nothing.',
      }),
    ),
  }),

  // Once, at the start. The gateway counts what a limiter demands: all demands of a request together, or none.
  create: () => ({
    demand: ({ rule: { config }, facts }) => ({
      kind: 'meter',
      quota: config.budget.units,
      ms: config.budget.per,
      blockMs: 0,
      cost: Math.min(costOf(config, facts), config.budget.units),
    }),
  }),
})

/** What a request costs by its rule. */
export function costOf({ cost, weights, header }, facts) {
  const said = header !== undefined && facts.trusted ? facts.header(header) : undefined
  if (said !== undefined && /^[1-9][0-9]{0,2}$/.test(said)) return Number(said)
  const fitting = weights.filter(
    ({ path }) => facts.path === path || facts.path.startsWith(`${path.replace(/\/$/, '')}/`),
  )
  const [longest] = fitting.sort((a, b) => b.path.length - a.path.length)
  return longest?.cost ?? cost
}
