/** Plugin: how often one source may ask, by address, fingerprint, credentials, method or header (spec, 'Volumetric limits'). */
import { type Static, Type } from 'typebox'
import { Duration, definePlugin } from '../plugin.js'
import { ruleDemand } from './rule-demand.js'

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
  create: () => ({
    applies: ({ config: { when } }, facts) =>
      when === undefined || when.authenticated === facts.authenticated,
    demand: ruleDemand(({ quota, blockFor: blockMs = 0 }: Static<typeof schema>) => {
      return { kind: 'meter', quota: quota.requests, ms: quota.per, blockMs, hidden: true }
    }),
  }),
})
