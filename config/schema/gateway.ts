/** The shape of gateway.yaml: one source of types, validation and editor help. */
import { type Static, Type } from 'typebox'
import { COUNT_UNKNOWN_BY, PLANS, type UnknownProject } from '../words/words.js'
import { Duration } from './duration.js'
import {
  DECLARED_WORD,
  DeclaredWord,
  NamedMap,
  Network,
  ON_STORE_ERROR_HELP,
  OnStoreError,
  Strict,
  Version,
  Word,
  when,
} from './fields.js'
import { AdminListener, DataListener } from './listen.js'
import { Percent } from './percent.js'
import { observerList, type PluginSchemas, pluginEntry } from './plugin.js'
import { Closed, Route } from './routes.js'
import { Tracing } from './tracing.js'
import { Upstream } from './upstream.js'

const HeaderName = (name: string) =>
  Type.String({
    pattern: "^[a-z0-9!#$%&'*+.^`|~-]+$",
    maxLength: 128,
    expected: 'a header name in lowercase, without "_"',
    default: name,
    description: 'Header in which a trusted proxy sends this fingerprint.',
  })

/** Where a request goes and how this process behaves. */
export function gatewaySchema(plugins: PluginSchemas) {
  return Strict({
    version: Version(),
    listen: DataListener,
    admin: AdminListener,
    redis: Type.String({
      default: '',
      format: 'redis-url',
      maxLength: 2048,
      secret: true,
      expected:
        'a redis://, redis+cluster:// or redis+sentinel:// address (rediss with TLS; in a password % is written %25), or empty',
      description:
        'Redis that keeps the counters of all instances: redis://host:6379/0, redis+cluster://host:6379,host:6379 or redis+sentinel://host:26379,host:26379/master; rediss for TLS. Empty: each process counts for itself.',
    }),
    upstreams: NamedMap(Upstream, { description: 'Services behind the gateway, by name.' }),
    routes: Type.Array(Route, { minItems: 1, description: 'Which path goes to which upstream.' }),
    closed: Type.Array(Closed, {
      default: [],
      maxItems: 1000,
      description:
        'Paths that are answered 404, whatever routes say. All that an entry names must hold; letter case is ignored.',
    }),
    quotaPath: Type.Optional(
      Type.String({
        pattern: '^(/[^/*{}?#\\s]+)+$',
        maxLength: 1024,
        expected: 'a path such as /.well-known/quota, without a slash at the end',
        description:
          'Path at which the gateway itself tells callers, as JSON, what they have used of their quotas. It comes before all routes. A call costs nothing, and each project may make one a second.',
      }),
    ),
    identify: Type.Array(pluginEntry(plugins.identify), {
      default: ['host'],
      description: 'Plugins that find the project of a request, asked in this order.',
    }),
    observe: observerList(plugins.observe),
    unknownProject: UnknownProjectSetting,
    trustedProxies: Type.Array(Network, {
      default: [],
      description: 'Proxies whose forwarded and fingerprint headers are trusted.',
    }),
    fingerprintHeaders: Strict(
      { ja3: HeaderName('x-ja3-fingerprint'), ja4: HeaderName('x-ja4-fingerprint') },
      { default: {}, description: 'Headers with TLS fingerprints, accepted only from a trusted proxy.' },
    ),
    proxyHeaders: Type.Array(
      Type.String({
        format: 'proxy-header',
        maxLength: 128,
        expected:
          'a header name in lowercase, without "_", and not one that the gateway always sets or removes itself',
      }),
      {
        default: [],
        maxItems: 64,
        uniqueItems: true,
        description:
          'Headers in which trusted proxies tell upstreams about the client, such as cf-connecting-ip. They are passed on from a trusted proxy and removed from everyone else. Well-known ones that are not listed are always removed.',
      },
    ),
    credentials: Strict(
      {
        headers: Type.Array(
          Type.String({
            pattern: "^[a-z0-9!#$%&'*+.^_`|~-]+$",
            maxLength: 128,
            expected: 'a header name in lowercase',
          }),
          {
            default: ['authorization', 'x-api-key', 'x-session-token'],
            maxItems: 32,
            uniqueItems: true,
            description: 'Headers that make a request authenticated if they have a value.',
          },
        ),
        cookies: Type.Array(
          Type.String({
            pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
            maxLength: 128,
            expected: 'a cookie name, in which "*" stands for any text',
          }),
          {
            default: ['*session*'],
            maxItems: 32,
            uniqueItems: true,
            description:
              'Cookies that make a request authenticated; "*" stands for any text, and letter case is ignored.',
          },
        ),
      },
      {
        default: {},
        description:
          'What makes a request authenticated: its presence, not its validity. Rules with "verified" require a check.',
      },
    ),
    rateLimitFields: Word(['both', 'ietf', 'x', 'none'], {
      default: 'both',
      description: 'Limit fields in responses: RateLimit (ietf), x-ratelimit-* (x), both or none.',
    }),
    cors: Word(['echo', 'none'], {
      default: 'echo',
      description: "Access-Control-Allow-Origin on the gateway's own refusals: echo the Origin, or none.",
    }),
    retryJitter: Percent({
      minimum: 0,
      maximum: 100,
      default: '10%',
      description:
        'Retry-After is extended by up to this share, at most 60 s, depending on the key, so that clients do not all come back in the same second.',
    }),
    drain: Duration({
      default: '10s',
      minimum: '0ms',
      description: 'How long running requests may take to finish after SIGTERM.',
    }),
    store: Strict(
      {
        deadline: Duration({
          default: '25ms',
          maximum: '10s',
          description: 'Longest wait for a reply from Redis.',
        }),
        instances: Type.Integer({
          default: 1,
          minimum: 1,
          maximum: 10_000,
          description:
            'Number of gateways that share the limits, however many workers each has. Divides the quotas counted locally while Redis is away.',
        }),
        onError: OnStoreError({ default: 'local', description: ON_STORE_ERROR_HELP }),
      },
      { default: {}, description: 'The counter store.' },
    ),
    apiKeys: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        description:
          'File with the API keys that `sluice keys` makes, relative to this one. Read again when it changes.',
      }),
    ),
    projects: FilePath('projects.yaml', 'File with the projects, relative to this one.'),
    policies: FilePath('policies', 'Folder with the policy files (*.yaml), relative to this file.'),
    log: Strict(
      {
        decisions: Type.Unsafe<'refused' | 'all' | number>({
          type: ['string', 'number'],
          expected: DECISIONS,
          ...when(
            { type: 'number' },
            { minimum: 0, maximum: 1, expected: DECISIONS },
            { enum: ['refused', 'all'], expected: DECISIONS },
          ),
          default: 'refused',
          description:
            'Which decisions are logged: refused ones, all, or refused ones and a share of the allowed ones.',
        }),
        access: Word(['off', 'errors', 'all'], {
          default: 'errors',
          description:
            'Which requests get an access log line: none, those that failed (5xx, incomplete responses, refused credentials), or all.',
        }),
      },
      { default: {}, description: 'What is logged.' },
    ),
    usage: Type.Optional(
      Strict(
        {
          keep: Duration({
            minimum: '1h',
            maximum: '35d',
            default: '48h',
            description: 'How long the counts of an hour are kept.',
          }),
        },
        {
          description:
            'Counts requests by hour, project and bucket, for /usage on the admin port and `sluice usage`. Without it nothing is counted.',
        },
      ),
    ),
    tracing: Tracing,
    plugins: Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
      default: [],
      maxItems: 64,
      uniqueItems: true,
      description:
        'Additional plugins: names of installed packages, or paths relative to this file that begin with "./". They run in this process; a change of the list needs a restart.',
    }),
  })
}

const UNKNOWN_PROJECT = 'a plan, a map with "plan" and "environment", or reject'
const UnknownProjectSetting = Type.Unsafe<UnknownProject>({
  type: ['string', 'object'],
  expected: UNKNOWN_PROJECT,
  ...when(
    { type: 'object' },
    {
      required: ['plan', 'environment'],
      properties: {
        plan: DeclaredWord({ description: 'A plan.' }),
        environment: DeclaredWord({ description: 'An environment.' }),
        countBy: Word(COUNT_UNKNOWN_BY, {
          default: 'client',
          description:
            'What requests of unknown projects are counted by: the client address (of IPv6 the /64), the host (hosts after the first 100 together), or all together. A client chooses its host.',
        }),
      },
      additionalProperties: false,
    },
    { pattern: DECLARED_WORD.source, expected: UNKNOWN_PROJECT },
  ),
  default: 'developer',
  examples: [...PLANS, 'reject'],
  description:
    'How requests of unknown projects are counted, each client address by itself: under a plan, in production; with plans or environments of your own, or to count by something else, under { plan, environment, countBy }. Or reject (404).',
})

const DECISIONS = 'refused, all, or a share from 0 to 1'

const FilePath = (name: string, description: string) =>
  Type.String({ default: name, minLength: 1, maxLength: 1024, description })

export type Gateway = Static<ReturnType<typeof gatewaySchema>>
