/** Schema of `routes` and `closed` in gateway.yaml. */
import { Type } from 'typebox'
import { Name, Strict, Word } from './fields.js'
import { HostName } from './projects.js'

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
  upstream: Name('Name of an entry of `upstreams`.'),
  stripPrefix: prefix(
    'What the upstream does not get of the path: whole segments with which `path` begins, such as /v1. Limits and records see the path as it was asked for.',
  ),
  addPrefix: prefix('What the upstream gets in front of the path, after `stripPrefix`, such as /internal.'),
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
