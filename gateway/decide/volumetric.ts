/** Plugin: how often one source may ask, by address, fingerprint, credentials, method or header (spec, 'Volumetric limits'). */
import { type Static, Type } from 'typebox'
import { Duration, definePlugin, type KeyCount, type KeyLimit, type Ruling, type Spent } from '../plugin.js'

const schema = Type.Object({
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
})

export const volumetric = definePlugin({
  name: 'volumetric',
  kind: 'limit',
  schema,
  create: ({ counter }) => ({
    applies: ({ config: { when } }, facts) =>
      when === undefined || when.authenticated === facts.authenticated,

    spend({ rule: { id, config, onStoreError }, key }) {
      const limit = limitOf(config)
      return ruled(id, limit, counter.spend(key, limit, onStoreError))
    },

    peek({ rule: { id, config, onStoreError }, key }) {
      const limit = limitOf(config)
      return ruled(id, limit, counter.peek(key, limit, onStoreError))
    },

    recall({ rule: { id, config }, key }) {
      const limit = limitOf(config)
      const refused = counter.recall(key, limit)
      return refused && rulingOf(id, limit, refused)
    },
  }),
})

type Ruled = Ruling | 'unavailable'

function ruled(policy: string, limit: KeyLimit, spent: Spent | Promise<Spent>): Ruled | Promise<Ruled> {
  const rulingOn = (spent: Spent) => (spent === 'unavailable' ? spent : rulingOf(policy, limit, spent))
  return spent instanceof Promise ? spent.then(rulingOn) : rulingOn(spent)
}

function rulingOf(policy: string, { windowMs }: KeyLimit, count: KeyCount): Ruling {
  const { granted, store, quota, used, left, resetMs, giveBack } = count
  const reading = { policy, quota, windowMs, used, left, resetMs, violated: !granted, hidden: true }
  return { granted, store, readings: [reading], giveBack }
}

function limitOf({ quota, blockFor = 0 }: Static<typeof schema>): KeyLimit {
  return { quota: quota.requests, windowMs: quota.per, blockMs: blockFor }
}
