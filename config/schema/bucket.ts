/** The shape of a bucket in YAML: a list of patterns, or a map that says what they cost. */
import { Type } from 'typebox'
import type { BucketEntry, PatternEntry } from '../words/bucket.js'
import type { ReservedCost } from '../words/reserve.js'
import { WAIT, WAITING } from '../words/waits.js'
import { BUCKET_KEY_PARTS } from '../words/words.js'
import { Duration } from './duration.js'
import { Strict, Word, when } from './fields.js'
import { RefuseSchema } from './refuse.js'
import { ReservedCostSchema } from './reserve.js'

const MOST_PATTERNS = 1000
const COST = 'a whole number from 1 to 1000, or a map with reserve and settle'
const HELP = 'Requests that share one counter per project, or per key.'

const Cost = (description: string) => Type.Integer({ minimum: 1, maximum: 1000, description })

const { type: _fixed, ...fixedCost } = Cost('The same for every request.')
const { type: _reserved, ...reservedCost } = ReservedCostSchema

const pattern = { minLength: 1, maxLength: 1024, description: '"[METHOD ]/path/{id}/*/**", or "*".' }
const { type: _pattern, ...costlyPattern } = Strict({
  pattern: Type.String(pattern),
  cost: Cost('What a request of this pattern costs.'),
})

const patterns = {
  items: Type.Unsafe<PatternEntry>({
    type: ['string', 'object'],
    expected: 'a pattern such as "GET /path/{id}", or a map with pattern and cost',
    ...when({ type: 'string' }, pattern, costlyPattern),
  }),
  minItems: 1,
  maxItems: MOST_PATTERNS,
}

const { type: _bucket, ...bucketMap } = Strict({
  match: Type.Unsafe<readonly PatternEntry[]>({ type: 'array', ...patterns, description: HELP }),
  cost: Type.Optional(
    Type.Unsafe<number | ReservedCost>({
      type: ['integer', 'object'],
      expected: COST,
      ...when({ type: 'object' }, reservedCost, { ...fixedCost, expected: COST }),
      description: 'What a request costs unless its pattern says so. Default: 1.',
    }),
  ),
  key: Type.Optional(
    Type.Array(Word(BUCKET_KEY_PARTS, {}), {
      minItems: 1,
      uniqueItems: true,
      description: 'What requests are counted by. Default: [project].',
    }),
  ),
  refuse: Type.Optional(RefuseSchema),
  wait: Type.Optional(Duration(WAIT)),
  waiting: Type.Optional(Type.Integer(WAITING)),
})

export const BucketSchema = Type.Unsafe<BucketEntry>({
  type: ['array', 'object'],
  expected: 'a list of patterns, or a map with match, cost, key, refuse and wait',
  description: HELP,
  ...when({ type: 'array' }, patterns, bucketMap),
})
