/** Schema of `routes` and `closed` in gateway.yaml. */
import { Type } from 'typebox'
import { listed } from '../problem.js'
import { REQUEST_VALUES } from '../words/request-values.js'
import { Cors } from './cors.js'
import { Duration } from './duration.js'
import { Name, Strict, Word } from './fields.js'
import { Percent } from './percent.js'
import { HostName } from './projects.js'
import { Size } from './size.js'

const RouteHost = Type.String({
  pattern: '^(\\[[0-9a-f:.]+\\]|(\\*\\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)$',
  maxLength: 253,
  expected: 'a host name in lowercase, without port, or "*." and a name for every host below that',
  description:
    'Host whose requests take this route, or *.NAME for every host below NAME, but not NAME itself. The most specific host that has a route for the path wins: the name, then the longest *.NAME, then routes without host.',
})

const prefix = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: '^(/[^/*{}?#\\s]+)+$',
      maxLength: 1024,
      expected: 'segments of a path such as /v1, without a slash at the end',
      description,
    }),
  )

const VALUES = listed(
  REQUEST_VALUES.map(name => `\${${name}}`),
  'and',
)

const FieldName = {
  pattern: "^[a-z0-9!#$%&'*+.^_`|~-]+$",
  maxLength: 128,
  expected: 'a header name in lowercase',
}
const FieldValues = (description: string) =>
  Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      propertyNames: FieldName,
      additionalProperties: {
        type: 'string',
        pattern: '^([!-~]([ -~]*[!-~])?)?$',
        maxLength: 4096,
        expected: 'a text of printable ASCII characters without blanks around it',
      },
      description,
    }),
  )
const FieldChanges = (description: string) =>
  Strict(
    {
      set: FieldValues('Replaces the fields of these names, those of a request in every spelling.'),
      add: FieldValues('Adds to the fields of these names.'),
      remove: Type.Optional(
        Type.Array(Type.String(FieldName), {
          maxItems: 64,
          uniqueItems: true,
          description: 'Removes the fields of these names, those of a request in every spelling.',
        }),
      ),
    },
    { description },
  )

/** The statuses of a redirect. */
const REDIRECTS = [301, 302, 303, 307, 308]

const Redirect = Strict(
  {
    to: Type.String({
      pattern: '^(https?://[^/?#@{]|/(?![/\\\\]))[!-~]*$',
      maxLength: 2048,
      expected: 'an address such as "https://acme.test{path}", or a path',
      description: `Where to: an address or a path. {path} is the path and query that were asked for; it may hold ${VALUES}.`,
    }),
    status: Type.Unsafe<number>({
      type: 'integer',
      enum: REDIRECTS,
      expected: listed(REDIRECTS.map(String)),
      default: 308,
      description: 'Status of the response: 301, 302, 303, 307 or 308.',
    }),
  },
  { description: 'Where clients are sent instead. Credentials, limits and records are as for other routes.' },
)

const Respond = Strict(
  {
    status: Type.Integer({
      default: 200,
      minimum: 200,
      maximum: 599,
      description: 'Status of the response.',
    }),
    type: Type.String({
      default: 'text/plain; charset=utf-8',
      pattern: '^[!-~]([ -~]*[!-~])?$',
      maxLength: 256,
      expected: 'a media type such as text/plain',
      description: 'Content-Type of the body.',
    }),
    body: Type.String({ default: '', maxLength: 65_536, description: 'The body, sent as it is.' }),
  },
  {
    description: 'What the gateway answers itself. Credentials, limits and records are as for other routes.',
  },
)

/** Which path goes to which upstream. */
export const Route = Strict({
  host: Type.Optional(RouteHost),
  path: Type.String({
    pattern: '^([A-Z]+ )?/',
    maxLength: 1024,
    expected: 'a path pattern that begins with "/", or with a method as in "GET /path"',
    description:
      'Path pattern, "[METHOD ]/path"; the most specific one wins. {id} and * stand for one segment, ** for any number.',
  }),
  upstream: Type.Optional(
    Name(
      'Name of an entry of `upstreams`. A route has exactly one of upstream, split, redirect and respond.',
    ),
  ),
  split: Type.Optional(
    Type.Array(
      Strict({
        upstream: Name('Name of an entry of `upstreams`.'),
        share: Percent({
          minimum: 0,
          maximum: 100,
          description: 'Share of the projects, or of the clients of unknown ones. The shares add up to 100%.',
        }),
      }),
      {
        minItems: 1,
        maxItems: 64,
        description:
          'Several upstreams in place of one. A project, or the network of a client whose project is not known, always goes to the same one.',
      },
    ),
  ),
  redirect: Type.Optional(Redirect),
  respond: Type.Optional(Respond),
  stripPrefix: prefix(
    'What the upstream does not get of the path: whole segments with which `path` begins, such as /v1. Limits and records see the path as it was asked for.',
  ),
  headers: Type.Optional(
    Strict(
      {
        request: Type.Optional(
          FieldChanges('Fields of the request to the upstream, after those of the gateway are made.'),
        ),
        response: Type.Optional(
          FieldChanges(
            'Fields of the response to the client. Refusals of the gateway get what is set and added, too, besides their own fields.',
          ),
        ),
      },
      {
        description: `Header fields that change on the way. Values may hold ${VALUES}.`,
      },
    ),
  ),
  addPrefix: prefix('What the upstream gets in front of the path, after `stripPrefix`, such as /internal.'),
  timeouts: Type.Optional(
    Strict(
      {
        connect: Type.Optional(Duration({ description: 'Longest wait for a connection to the upstream.' })),
        head: Type.Optional(
          Duration({ description: 'Longest wait for the head of the response; then 504.' }),
        ),
        idle: Type.Optional(Duration({ description: 'Longest pause inside a body, sent or received.' })),
        upgradeIdle: Type.Optional(
          Duration({ description: 'Longest time without a byte either way on an open WebSocket.' }),
        ),
      },
      { description: "In place of the upstream's timeouts of the same names." },
    ),
  ),
  maxBody: Type.Optional(
    Size({
      description:
        "Largest request body; a larger one is answered 413. The upstream's own limit holds where it is smaller.",
    }),
  ),
  cors: Type.Optional(Cors),
  auth: Word(['optional', 'required'], {
    default: 'optional',
    description:
      'Whether a credential is required that one of `identify` has checked. Without one the answer is 401.',
  }),
  scopes: Type.Array(
    Type.String({
      // RFC 6749 section 3.3.
      pattern: '^[!#-[\\]-~]+$',
      maxLength: 128,
      expected: 'a scope: letters, digits and punctuation without quotes, backslashes and spaces',
    }),
    {
      default: [],
      maxItems: 32,
      uniqueItems: true,
      description: 'What the credential must allow, all of it; otherwise the answer is 403.',
    },
  ),
})

const path = (description: string) =>
  Type.Optional(
    Type.String({ pattern: '^/[!-~]*$', maxLength: 1024, expected: 'a path such as /admin', description }),
  )

/** Paths that are answered 404, whatever routes say. */
export const Closed = Strict(
  {
    host: Type.Optional(HostName('Host whose requests are meant. Default: every host.')),
    path: path('This path alone.'),
    prefix: path('Every path that begins so, "/admin" also /administrator.'),
    contains: Type.Optional(
      Type.String({
        pattern: '^[!-~]+$',
        maxLength: 1024,
        expected: 'a part of a path such as /.git',
        description: 'Every path with this text in it.',
      }),
    ),
  },
  { minProperties: 1, expected: 'a map with host, path, prefix or contains' },
)
