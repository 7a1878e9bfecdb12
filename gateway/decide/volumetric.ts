/** Plugin: how often one source may ask, by address, fingerprint, credentials, method or header (spec, 'Volumetric limits'). */
import { Type } from 'typebox'
import { Duration, definePlugin, type KeyLimit, type Ruling, type Spent } from '../plugin.js'

export const volumetric = definePlugin({
  name: 'volumetric',
  kind: 'limit',
  schema: Type.Object({
    quota: Type.Object(
      {
        requests: Type.Integer({
          minimum: 1,
          maximum: 1_000_000_000,
          description: 'Requests that one key may make in the window.',
        }),
        per: Duration({
          unit: '1s',
          description: 'Length of the window, which begins with the first request of a key.',
        }),
      },
      { additionalProperties: false, description: 'How many requests in which time.' },
    ),
    blockFor: Type.Optional(
      Duration({
        unit: '1s',
        description:
          'A key that passes its quota is refused for at least this long. Without it: until its window ends.',
      }),
    ),
    when: Type.Optional(
      Type.Object(
        { authenticated: Type.Boolean({ description: 'Whether the request carries credentials.' }) },
        { additionalProperties: false, description: 'Requests the rule looks at, of those it matches.' },
      ),
    ),
  }),
  create: ({ counter }) => ({
    applies: ({ config: { when } }, facts) =>
      when === undefined || when.authenticated === facts.authenticated,

    spend({ rule: { id, config, onStoreError }, key }) {
      const { quota, blockFor = 0 } = config
      const limit = { quota: quota.requests, windowMs: quota.per, blockMs: blockFor }
      const spent = counter.spend(key, limit, onStoreError)
      if (spent instanceof Promise) return spent.then(later => rulingOf(id, limit, later))
      return rulingOf(id, limit, spent)
    },
  }),
})

function rulingOf(policy: string, { quota, windowMs }: KeyLimit, spent: Spent): Ruling | 'unavailable' {
  if (spent === 'unavailable') return spent
  const { granted, store, used, left, resetMs, giveBack } = spent
  const reading = { policy, quota, windowMs, used, left, resetMs, violated: !granted, hidden: true }
  return { granted, store, readings: [reading], giveBack }
}
