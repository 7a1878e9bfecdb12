/** The shape in YAML of a cost that is reserved before a request and settled by its response. */
import { Type } from 'typebox'
import { ANSWER_HEADER } from '../words/field-names.js'
import { UNKNOWN_COSTS } from '../words/reserve.js'
import { Requests, Strict, Word, when } from './fields.js'

const STEP = '[A-Za-z0-9_$-]{1,64}'

const JsonPath = (description: string) =>
  Type.String({
    pattern: `^${STEP}(?:\\.${STEP}){0,7}$`,
    expected: 'the names of at most eight members, such as usage.total_tokens',
    description,
  })

const Reserve = Strict(
  {
    default: Requests('What is reserved for a request without a number of its own.'),
    jsonBody: Type.Optional(JsonPath('Where the request’s JSON has that number, such as max_tokens.')),
    atMost: Type.Optional(
      Requests(
        'The most that is reserved; with jsonBody. A request whose body cannot be read reserves this.',
      ),
    ),
  },
  {
    ...when(
      { required: ['jsonBody'] },
      {
        required: ['atMost'],
        whyRequired:
          'The key "atMost" is missing: it bounds what a client can say, and is reserved where the body cannot be read.',
      },
      when(
        { required: ['atMost'] },
        {
          required: ['jsonBody'],
          whyRequired: 'The key "jsonBody" is missing: "atMost" bounds what that says.',
        },
        {},
      ),
    ),
    description: 'What a request is charged before it is forwarded.',
  },
)

const Settle = Strict(
  {
    answerHeader: Type.Optional(
      Type.String({
        ...ANSWER_HEADER,
        maxLength: 128,
        description: 'The field of the response with the cost.',
      }),
    ),
    jsonBody: Type.Optional(JsonPath('Where the response’s JSON has the cost, such as usage.total_tokens.')),
    sse: Type.Optional(
      JsonPath('The same in the data of the last server-sent event that has it, for responses that stream.'),
    ),
  },
  {
    minProperties: 1,
    expected: 'a map with answerHeader, jsonBody or sse',
    description: 'What the request has cost, by its response.',
  },
)

export const ReservedCostSchema = Strict(
  {
    reserve: Reserve,
    settle: Settle,
    unknown: Type.Optional(
      Word(UNKNOWN_COSTS, {
        description:
          'What a request costs whose response has no number: keep what was reserved (default), or nothing (free).',
      }),
    ),
  },
  { description: 'Reserved before the request is forwarded, settled when its response has ended.' },
)
