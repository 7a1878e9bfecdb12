/** The addresses of an upstream in gateway.yaml, and how requests are spread over them. */
import { type Static, Type } from 'typebox'
import { BALANCES } from '../words/words.js'
import { Duration } from './duration.js'
import { Strict, Word, when } from './fields.js'

export const Origin = (description: string) =>
  Type.String({
    format: 'http-origin',
    maxLength: 2048,
    secret: true,
    expected: 'an http:// or https:// address without path, query or credentials',
    description,
  })

const HELP = 'Address of one of them.'
const Weighted = Strict({
  url: Origin(HELP),
  weight: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 100,
    description: 'How many requests it gets compared with the others.',
  }),
})

const { type: _plain, ...plainOrigin } = Origin(HELP)
const { type: _weighted, ...weighted } = Weighted

/** One of `urls`. */
export const UrlEntry = Type.Unsafe<string | Static<typeof Weighted>>({
  type: ['string', 'object'],
  expected: 'an http:// or https:// address, or a map with url and weight',
  ...when({ type: 'string' }, plainOrigin, weighted),
})

/** Keys of an upstream that say how requests are spread. */
export const spreading = {
  resolve: Type.Optional(
    Duration({
      minimum: '1s',
      maximum: '1h',
      description:
        'How often the names in its addresses are resolved anew; each of the addresses they have, 64 at most, is then one by itself. Unset: a name is resolved for each new connection, which takes the first address that answers.',
    }),
  ),
  balance: Word(BALANCES, {
    default: 'least-busy',
    description:
      'Which address gets a request: the one with the fewest requests in progress for its weight (least-busy), or each in its turn (round-robin).',
  }),
  slowStart: Type.Optional(
    Duration({
      minimum: '1s',
      maximum: '1h',
      description:
        'How long an address that comes back, or is new, gets fewer requests: from a tenth of its weight up to all of it.',
    }),
  ),
}
