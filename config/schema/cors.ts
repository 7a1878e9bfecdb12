/** Schema of `cors` of a route. */
import { Type } from 'typebox'
import { Duration } from './duration.js'
import { Strict } from './fields.js'

const names = (description: string) =>
  Type.Array(
    Type.String({
      pattern: "^(\\*|[a-z0-9!#$%&'+.^_`|~-][a-z0-9!#$%&'*+.^_`|~-]*)$",
      maxLength: 128,
      expected: 'a header name in lowercase, or "*" for all but authorization',
    }),
    { default: [], maxItems: 128, uniqueItems: true, description },
  )

export const Cors = Strict(
  {
    origins: Type.Array(
      Type.String({
        pattern: '^(\\*|[a-z][a-z0-9+.-]*://[a-z0-9._:\\[\\]-]+)$',
        maxLength: 1024,
        expected: 'an origin as browsers send it, such as https://acme.test, or "*" for every one',
      }),
      {
        minItems: 1,
        maxItems: 1024,
        uniqueItems: true,
        description: 'Origins whose pages may read the responses, or "*" for every one.',
      },
    ),
    methods: Type.Array(
      Type.String({ pattern: '^[A-Z]+$', maxLength: 32, expected: 'a method in capitals' }),
      {
        default: ['GET', 'HEAD', 'POST'],
        maxItems: 64,
        uniqueItems: true,
        description: 'Methods that those pages may use.',
      },
    ),
    headers: names('Request headers that those pages may set, besides the few that need no leave.'),
    expose: names(
      'Response headers that those pages may read, besides the few that need no leave, the rate limits and Retry-After.',
    ),
    credentials: Type.Boolean({
      default: false,
      description: 'Whether browsers may send cookies and other credentials along. Not with "*".',
    }),
    maxAge: Type.Optional(
      Duration({
        unit: '1s',
        maximum: '24h',
        minimum: '0s',
        description: 'How long browsers may remember this. Unset: they choose, usually 5s.',
      }),
    ),
  },
  {
    description:
      'Cross-origin requests (CORS, Fetch standard). Preflights are answered here, before a credential is asked for; every response has the fields, refusals too, in place of those of the upstream.',
  },
)
