/** Plugin: how many requests may work on one resource at the same time (spec, 'In-flight limits'). */
import { type Static, Type } from 'typebox'
import { WAIT, WAITING } from '../../config/words/waits.js'
import { IN_FLIGHT } from '../../config/words/words.js'
import { ruleDemand } from '../compiled-rule.js'
import { Duration, definePlugin } from '../plugin.js'

const schema = Type.Object({
  max: Type.Integer({
    minimum: 1,
    default: 1,
    description: 'Requests that may be in flight per key.',
  }),
  slotTtl: Duration({
    default: '15s',
    minimum: '1s',
    description: 'How long a slot outlives a gateway that died; renewed while the request lives.',
  }),
  maxHold: Duration({
    default: '1h',
    description:
      'A slot is given back after this long even if its request is still in flight; the log then names the rule.',
  }),
  count: Type.Enum(['handshake', 'lifetime'], {
    type: 'string',
    default: 'handshake',
    description:
      'What a WebSocket holds its slot for: the handshake, or its lifetime until the tunnel closes. Other requests hold theirs until their answer has ended.',
  }),
  wait: Type.Optional(Duration(WAIT)),
  waiting: Type.Optional(Type.Integer(WAITING)),
})

export const inFlight = definePlugin({
  name: IN_FLIGHT,
  kind: 'limit',
  schema,
  create: () => ({
    demand: ruleDemand(({ max, slotTtl: ttlMs, maxHold: maxHoldMs, count }: Static<typeof schema>) => {
      return { kind: 'slots', max, ttlMs, maxHoldMs, count }
    }),
  }),
})
