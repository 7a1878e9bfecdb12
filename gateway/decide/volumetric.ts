/**
 * Plugin: how many requests one source may send, by address, fingerprint, credentials, method or header (spec,
 * 'Volumetric limits').
 */
import { type Static, Type } from 'typebox'
import { NotifySchema } from '../../config/schema/notify.js'
import { ANSWER_HEADER } from '../../config/words/field-names.js'
import { VOLUMETRIC } from '../../config/words/words.js'
import { ruleDemand } from '../compiled-rule.js'
import type { MeterDemand } from '../demand.js'
import { Duration, definePlugin } from '../plugin.js'
import { costAfterAnswer, type WrittenCost } from './after-answer.js'

const COST = 'a whole number from 1 to 1000, or a map with answerHeader'
const STATUS = 'a status from 100 to 599, or a class of them such as 4xx'

const HeaderName = Type.String({
  ...ANSWER_HEADER,
  maxLength: 128,
  description: 'The field of the answer; where it is missing or not a number, the request costs 1.',
})
const Status = Type.Unsafe<number | string>({
  type: ['integer', 'string'],
  expected: STATUS,
  if: { type: 'integer' },
  // biome-ignore lint/suspicious/noThenProperty: the JSON Schema keyword.
  then: { minimum: 100, maximum: 599, expected: STATUS },
  else: { pattern: '^[1-5]xx$', expected: STATUS },
})

const window = {
  requests: Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    description: 'Requests that one key may make in the window, or units where requests cost more than one.',
  }),
  per: Duration({
    unit: '1s',
    description: 'Length of the window, which begins with the first request of a key.',
  }),
}

const schema = Type.Object({
  quota: Type.Object(
    {
      ...window,
      notify: Type.Optional(NotifySchema),
      trial: Type.Optional(
        Type.Object(window, {
          additionalProperties: false,
          description:
            'A quota on trial: it counts every request of the rule, refused or not, and only reports, as "<rule>.trial".',
        }),
      ),
    },
    { additionalProperties: false, description: 'How many requests in which time.' },
  ),
  blockFor: Type.Optional(
    Duration({
      unit: '1s',
      description:
        'A key that passes its quota is refused for at least this long. Default: until its window ends.',
    }),
  ),
  cost: Type.Optional(
    Type.Unsafe<WrittenCost['cost']>({
      type: ['integer', 'object'],
      expected: COST,
      if: { type: 'object' },
      // biome-ignore lint/suspicious/noThenProperty: the JSON Schema keyword.
      then: Type.Object({ answerHeader: HeaderName }, { additionalProperties: false }),
      else: { minimum: 1, maximum: 1000, expected: COST },
      description:
        'What a request costs; with answerHeader, what that field of the upstream’s answer says, charged afterwards.',
    }),
  ),
  count: Type.Optional(
    Type.Enum(['request', 'message'], {
      type: 'string',
      description:
        'message: the messages that clients send on WebSockets count, and no request does. Default: request.',
    }),
  ),
  countWhen: Type.Optional(
    Type.Object(
      {
        status: Type.Array(Status, {
          minItems: 1,
          maxItems: 100,
          uniqueItems: true,
          description: 'Statuses, or classes of them such as 4xx.',
        }),
      },
      {
        additionalProperties: false,
        description: 'Only requests with these answers of the upstream are counted, after their answer.',
      },
    ),
  ),
})

export const volumetric = definePlugin({
  name: VOLUMETRIC,
  kind: 'limit',
  schema,
  create: () => ({
    demand: check => {
      const { calls = 1, rule } = check
      return calls === 1 ? demandOfRule(check) : demandOf(rule.config, calls)
    },
  }),
})

type Config = Static<typeof schema>

const demandOfRule = ruleDemand<Config, MeterDemand>(config => demandOf(config))

/** A cost that the answer tells is that of all calls. */
function demandOf({ quota, blockFor: blockMs = 0, cost: one, countWhen }: Config, calls = 1): MeterDemand {
  const meter = { kind: 'meter', quota: quota.requests, ms: quota.per, blockMs, hidden: true } as const
  const cost = calls > 1 && typeof one !== 'object' ? (one ?? 1) * calls : one
  const afterAnswer = costAfterAnswer({ cost, countWhen })
  if (afterAnswer !== undefined) return { ...meter, afterAnswer }
  return typeof cost === 'number' ? { ...meter, cost } : meter
}
