/** Plugin: how many requests may work on one resource at the same time (spec, 'In-flight limits'). */
import { Type } from 'typebox'
import { Duration, definePlugin } from '../plugin.js'

export const inFlight = definePlugin({
  name: 'in-flight',
  kind: 'limit',
  schema: Type.Object({
    max: Type.Integer({ minimum: 1, default: 1, description: 'Requests that may be in flight per key.' }),
    slotTtl: Duration({
      default: '15s',
      description: 'How long a slot outlives a gateway that died; renewed while the request lives.',
    }),
  }),
  create: () => ({
    demand: ({ rule: { config } }) => ({ kind: 'slots', max: config.max, ttlMs: config.slotTtl }),
  }),
})
