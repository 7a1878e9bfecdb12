/** `retries` of an upstream in gateway.yaml. */
import { Type } from 'typebox'
import { RETRY_REASONS, type RetryReason } from '../words/words.js'
import { Strict } from './fields.js'
import { Percent } from './percent.js'

export const Retries = Strict(
  {
    attempts: Type.Integer({
      default: 2,
      minimum: 1,
      maximum: 10,
      description: 'How often a request is tried in all, the first time included.',
    }),
    on: Type.Array(Type.Unsafe<RetryReason>({ enum: [...RETRY_REASONS] }), {
      default: ['connect'],
      minItems: 1,
      uniqueItems: true,
      description:
        'After what a request is tried at another address: connect (no connection, or one that broke before the answer began), or a status of the upstream. GET, HEAD, OPTIONS, PUT and DELETE, unless some of the body was sent; other methods only if nothing was sent.',
    }),
    budget: Percent({
      minimum: 0,
      maximum: 100,
      default: '20%',
      description:
        'Most retries, as a share of the requests of the last 10 seconds; three are always allowed. From each worker.',
    }),
  },
  {
    description:
      'When a request is sent again. Unset: to every other address while none can be connected to, and a GET or HEAD once after a broken connection.',
  },
)
