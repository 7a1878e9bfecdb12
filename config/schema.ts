/** The shapes of gateway.yaml and projects.yaml: one source of types, validation and editor help. */
import { type Static, type TSchema, Type } from 'typebox'
import { Duration, parseDuration } from './duration.js'
import {
  DECLARED_WORD,
  DeclaredWord,
  Name,
  NamedMap,
  Network,
  ON_STORE_ERROR_HELP,
  OnStoreError,
  Strict,
  Version,
  Word,
  when,
} from './fields.js'
import { AdminListener, DataListener } from './listen-schema.js'
import { Percent } from './percent.js'
import { OverrideSchema } from './quota-schema.js'
import { Tracing } from './tracing-schema.js'
import { Upstream } from './upstream-schema.js'
import { ENVIRONMENTS, PLANS, type UnknownProject } from './words.js'

/** Config schemas of the plugins, by plugin name; passed in because this folder imports nothing from the gateway. */
export interface PluginSchemas {
  readonly identify: Readonly<Record<string, TSchema>>
  /**
   * A limit plugin's name is the `kind` of its policy files; its schema describes a rule's keys besides the common
   * ones.
   */
  readonly limit: Readonly<Record<string, TSchema>>
  readonly observe: Readonly<Record<string, TSchema>>
}

/** A host name in the form under which requests are counted. */
export const HOST_NAME_PATTERN = '^(\\[[0-9a-f:.]+\\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)$'
const HostName = Type.String({
  pattern: HOST_NAME_PATTERN,
  maxLength: 253,
  expected: 'a host name in lowercase, without port',
})
const HeaderName = (name: string) =>
  Type.String({
    pattern: "^[a-z0-9!#$%&'*+.^`|~-]+$",
    maxLength: 128,
    expected: 'a header name in lowercase, without "_"',
    default: name,
    description: 'Header in which a trusted proxy sends this fingerprint.',
  })

const Route = Strict({
  path: Type.String({
    pattern: '^/',
    maxLength: 1024,
    expected: 'a path pattern that begins with "/"',
    description:
      'Path pattern; the most specific one wins. {id} and * stand for one segment, ** for any number.',
  }),
  upstream: Name('Name of an entry of `upstreams`.'),
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
      expected: 'a redis://, redis+cluster:// or redis+sentinel:// address (rediss with TLS), or empty',
      description:
        'Redis that keeps the counters of all instances: redis://host:6379/0, redis+cluster://host:6379,host:6379 or redis+sentinel://host:26379,host:26379/master; rediss for TLS. Empty: each process counts for itself.',
    }),
    upstreams: NamedMap(Upstream, { description: 'Services behind the gateway, by name.' }),
    routes: Type.Array(Route, { minItems: 1, description: 'Which path goes to which upstream.' }),
    identify: Type.Array(pluginEntry(plugins.identify), {
      default: ['host'],
      description: 'Plugins that find the project of a request, asked in this order.',
    }),
    observe: observers(plugins.observe),
    unknownProject: UnknownProjectSetting,
    trustedProxies: Type.Array(Network, {
      default: [],
      description: 'Proxies whose forwarded and fingerprint headers are trusted.',
    }),
    fingerprintHeaders: Strict(
      { ja3: HeaderName('x-ja3-fingerprint'), ja4: HeaderName('x-ja4-fingerprint') },
      { default: {}, description: 'Headers with TLS fingerprints, accepted only from a trusted proxy.' },
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
            'Which requests get an access log line: none, those that failed (5xx, incomplete responses), or all.',
        }),
      },
      { default: {}, description: 'What is logged.' },
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
      },
      additionalProperties: false,
    },
    { pattern: DECLARED_WORD.source, expected: UNKNOWN_PROJECT },
  ),
  default: 'developer',
  examples: [...PLANS, 'reject'],
  description:
    'How requests of unknown projects are counted, by host (hosts after the first 100 together): under a plan, in production; with plans or environments of your own, under { plan, environment }. Or reject (404).',
})

const DECISIONS = 'refused, all, or a share from 0 to 1'

const FilePath = (name: string, description: string) =>
  Type.String({ default: name, minLength: 1, maxLength: 1024, description })

/** An identifier or observer: its plugin, and that plugin's own keys. */
export interface PluginEntry {
  readonly plugin: string
  readonly [key: string]: unknown
}

/** One of the given plugins with its settings; `host` is short for `{ plugin: host }`. */
export function pluginEntry(schemas: Readonly<Record<string, TSchema>>) {
  const names = Object.keys(schemas)
  const whole = names.map(name => {
    const plugin = { const: name, description: 'Name of the plugin.' }
    const own = schemas[name] as { properties?: object; required?: string[] }
    return when(
      { type: 'object', properties: { plugin: { const: name } }, required: ['plugin'] },
      { ...own, properties: { ...own.properties, plugin }, additionalProperties: false },
      {},
    )
  })
  return Type.Unsafe<PluginEntry>({
    type: ['string', 'object'],
    expected: 'the name of a plugin, or a map with "plugin" and its settings',
    shorthand: Object.fromEntries(names.map(name => [name, { plugin: name, ...defaultsOf(schemas[name]) }])),
    ...when(
      { type: 'string' },
      { enum: names },
      { required: ['plugin'], properties: { plugin: { enum: names } }, allOf: whole },
    ),
  })
}

/** No observer is built in, so without plugins the list must be empty. */
function observers(schemas: PluginSchemas['observe']) {
  const description = 'Plugins that are notified of every finished request.'
  if (Object.keys(schemas).length > 0) {
    return Type.Array(pluginEntry(schemas), { default: [], description })
  }
  const expected = 'an empty list, because no loaded plugin observes requests'
  return Type.Array(Type.Unsafe<PluginEntry>({}), { default: [], maxItems: 0, expected, description })
}

/** A plugin's default settings. */
function defaultsOf(schema: TSchema | undefined): Record<string, unknown> {
  const properties = (
    schema as { properties?: Record<string, { default?: unknown; duration?: object }> } | undefined
  )?.properties
  const written = Object.entries(properties ?? {}).filter(([, property]) => property.default !== undefined)
  return Object.fromEntries(
    written.map(([key, { default: value, duration }]) => [
      key,
      duration ? parseDuration(String(value)) : value,
    ]),
  )
}

const ProjectEntry = Strict({
  id: Type.String({
    pattern: '^[A-Za-z0-9._:-]{1,128}$',
    expected: 'an id of 1 to 128 letters, digits, ".", "_", "-" or ":"',
    description: 'Stable id: limits are counted by it.',
  }),
  plan: DeclaredWord({ description: 'Subscription plan.', examples: [...PLANS] }),
  environment: DeclaredWord({ description: 'Environment of the project.', examples: [...ENVIRONMENTS] }),
  hosts: Type.Array(HostName, { default: [], description: 'Host names of this project (plugin host).' }),
  paths: Type.Array(
    Type.String({ pattern: '^/[^?#*{}\\s]*$', maxLength: 1024, expected: 'a path prefix such as /acme' }),
    { default: [], description: 'Path prefixes of this project (plugin path).' },
  ),
  apiKeyHashes: Type.Array(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      secret: true,
      expected: 'the SHA-256 of a key in 64 lowercase hex digits, never the key itself',
    }),
    { default: [], description: 'SHA-256 of each API key, in hex (plugin api-key).' },
  ),
  overrides: NamedMap(OverrideSchema, {
    default: {},
    description:
      'Negotiated limits of this project, by bucket. What an override does not set stays as in the row.',
  }),
})

const wordList = (words: readonly string[], description: string) =>
  Type.Array(DeclaredWord({}), {
    default: [...words],
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    description,
  })

export const projectsSchema = Strict({
  version: Version(),
  plans: wordList(PLANS, 'The plans that projects and limits may name.'),
  environments: wordList(ENVIRONMENTS, 'The environments that projects and limits may name.'),
  projects: Type.Array(ProjectEntry, { description: 'The known projects.' }),
})

export type Gateway = Static<ReturnType<typeof gatewaySchema>>
export type ProjectEntry = Static<typeof ProjectEntry>
