/** Which part of the code may import which, and where each third-party package is used. */
import { readdirSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
import t from 'tap'
import { type Import, importsOf } from './helpers/imports.js'
import { projectFile, root } from './helpers/root.js'

/** What a place (a folder with everything below it, or one file) may import besides itself. */
interface Row {
  readonly value?: readonly string[]
  /** Places of which it may import types only. */
  readonly types?: readonly string[]
  /** Places it may import dynamically. */
  readonly dynamic?: readonly string[]
}

/** The types that the rooms exchange. */
const TYPES = ['gateway/types.ts', 'gateway/demand.ts', 'gateway/verdict.ts', 'gateway/route.ts']

/** What the wire formats know. */
const MESSAGES = ['gateway/message.ts', 'gateway/outgoing-request.ts', 'gateway/errors.ts']

/** What every room knows: the closed lists of words, and the types and errors that rooms pass to each other. */
const WORDS = ['config/words', ...TYPES, 'gateway/compiled-rule.ts', ...MESSAGES, 'gateway/plugin.ts']
const ROOMS = ['listen', 'identify', 'policy', 'decide', 'forward', 'observe'].map(room => `gateway/${room}`)

const SHARED_BY_SERVICES = [
  'environment.ts',
  'json.ts',
  'keys.ts',
  'log.ts',
  'login-names.ts',
  'storage',
  'http',
].map(name => `services/${name}`)

/** The only file for OpenTelemetry's packages. They are optional, so it is only imported dynamically. */
const OTEL_HOME = 'gateway/observe/tracing/otel.ts'

const PLACES: Record<string, Row> = {
  'config/words': {},
  ...Object.fromEntries(
    TYPES.map(file => [file, { types: [...TYPES, 'config/words', 'gateway/compiled-rule.ts'] }]),
  ),
  'gateway/compiled-rule.ts': { types: TYPES },
  'gateway/errors.ts': { types: TYPES },
  'gateway/message.ts': { types: ['gateway/errors.ts', ...TYPES] },
  'gateway/outgoing-request.ts': { types: ['gateway/message.ts'] },
  'gateway/plugin.ts': { value: ['config/schema'], types: TYPES },
  'gateway/plugins.ts': { value: [...WORDS, ...ROOMS] },
  // For tests of plugins: the same code as in a gateway, so that the tests show what a gateway would do.
  'gateway/testing.ts': { value: [...WORDS, 'gateway/decide', 'gateway/listen', 'config'] },
  // The command named in package.json.
  'gateway/cli.js': { value: ['gateway/run'], dynamic: ['tools/cli.ts'] },

  // The wire format of HTTP/1.1: knows messages, but not what they are used for.
  'gateway/http1': { value: MESSAGES },
  // That of HTTP/2, with the grammar and the rules of HTTP/1.1.
  'gateway/http2': { value: [...MESSAGES, 'gateway/http1'] },

  // A room knows itself and the lists of words.
  ...Object.fromEntries(ROOMS.map(room => [room, { value: WORDS }])),
  // Its plugins describe their settings, as those of others do, and watch files as the configuration does.
  'gateway/identify': { value: [...WORDS, 'config/schema', 'config/marks.ts'] },
  // Its volumetric rules have quotas that buckets have, too.
  'gateway/decide': { value: [...WORDS, 'config/schema/notify.ts'] },
  // Compiles the configuration as it was loaded.
  'gateway/policy': { value: WORDS, types: ['config/types.ts'] },
  // The two users of it: clients in one, upstreams in the other.
  'gateway/listen': { value: [...WORDS, 'gateway/http1', 'gateway/http2'] },
  'gateway/forward': { value: [...WORDS, 'gateway/http1', 'gateway/http2'] },

  // Orders certificates; who serves them is injected.
  'gateway/acme': {
    value: [...WORDS, 'config/file-lock.ts', 'config/files.ts', 'config/checks/pem.ts'],
  },

  // Looks at the readings of verdicts; shares the store of decide, and the calls of webhooks.
  'gateway/notify': {
    value: [...WORDS, 'gateway/decide/redis', 'webhooks'],
    types: ['config/types.ts'],
  },

  // Counts finished requests; shares the store of decide.
  'gateway/usage': { value: [...WORDS, 'gateway/decide/redis', 'config/formats.ts'] },

  // Written against the rooms' types; their functions are injected, except those of forward that word a response.
  'gateway/pipeline': { value: [...WORDS, 'gateway/forward'], types: ROOMS },
  // One configuration, loaded, checked and compiled, with the plugins it names.
  'gateway/configured': {
    value: [...WORDS, ...ROOMS, 'gateway/plugins.ts', 'config'],
    types: ['gateway/pipeline'],
  },
  // What operators change while the gateway runs: stored, put in force, reported by the admin port.
  'gateway/overrides': {
    value: [...WORDS, 'gateway/policy', 'gateway/decide', 'gateway/configured', 'config'],
    types: ['gateway/admin'],
  },
  // Calls the same code as a request, and reports its results.
  'gateway/explain': {
    value: [...WORDS, ...ROOMS, 'gateway/pipeline', 'gateway/configured', 'gateway/overrides', 'config'],
    types: ['gateway/admin'],
  },
  // On a port of its own; what it reports is injected.
  'gateway/admin': { value: [...WORDS, 'services/http/api-page.ts'] },
  // Runs in a browser: knows the types of the data it gets, and no code of the gateway.
  'gateway/ui': { types: ['gateway/admin', 'gateway/explain/explanation.ts'] },
  // Knows all rooms; only this folder starts the services.
  'gateway/run': {
    value: [
      ...WORDS,
      ...ROOMS,
      ...['acme', 'http1', 'pipeline', 'configured', 'overrides', 'explain', 'admin', 'notify', 'usage'].map(
        room => `gateway/${room}`,
      ),
      'config',
      'services/storage',
      'webhooks',
    ],
    dynamic: [
      'services/directory/index.ts',
      'services/identity/index.ts',
      'services/welcome/index.ts',
      OTEL_HOME,
    ],
  },

  // The commands use the gateway's code, otherwise their answers would prove nothing.
  tools: {
    value: [
      ...WORDS,
      ...ROOMS,
      ...['plugins.ts', 'pipeline', 'configured', 'explain', 'admin', 'run'].map(room => `gateway/${room}`),
      'config',
      'services/storage',
      'webhooks',
    ],
    types: ['gateway/usage/row.ts'],
    dynamic: ['gateway/run/serve.ts', 'services/directory/index.ts', 'services/identity/index.ts'],
  },

  config: {},
  // Calls of webhooks, signed and sent: used by the directory and the gateway, and knows neither.
  webhooks: {},
  // What the settings and databases of both services have in common.
  'services/environment.ts': {},
  'services/login-names.ts': {},
  'services/storage': {},
  'services/json.ts': {},
  'services/keys.ts': { value: ['services/storage'] },
  'services/log.ts': {},
  // The HTTP edge of all: who is believed, how bodies are read and errors answered, what pages look like.
  'services/http': { types: ['services/log.ts'] },
  'services/directory': { value: [...SHARED_BY_SERVICES, 'webhooks'] },
  'services/identity': { value: SHARED_BY_SERVICES },
  'services/welcome': { value: ['services/http'] },
}

const OTEL = ['api', 'core', 'exporter-trace-otlp-http', 'resources', 'sdk-trace-base']

/** The home of each third-party package: one file per component. Files beside it may import the package's types. */
const HOMES: Record<string, readonly string[]> = {
  'acme-client': ['gateway/acme/authority.ts'],
  jose: ['gateway/identify/jwt/token.ts'],
  'ipaddr.js': ['webhooks/target.ts'],
  'read-tls-client-hello': ['gateway/listen/fingerprint.ts'],
  ioredis: ['gateway/decide/redis/connection.ts'],
  'rate-limiter-flexible': ['gateway/admin/wrong-keys.ts', 'services/http/wrong-keys.ts'],
  pino: ['gateway/observe/log.ts'],
  'prom-client': ['gateway/observe/series.ts', 'services/directory/metrics.ts'],
  ...Object.fromEntries(OTEL.map(name => [`@opentelemetry/${name}`, [OTEL_HOME]])),
  yaml: ['config/yaml.ts', 'config/yaml-text.ts'],
  ajv: ['config/validate.ts', 'services/directory/routes/body.ts', 'services/identity/decode/validate.ts'],
  'ajv-formats': ['services/identity/decode/validate.ts'],
  fastify: ['gateway/admin/server.ts', 'services/http/server.ts'],
  '@fastify/swagger': ['gateway/admin/api-document.ts', 'services/directory/routes/api-document.ts'],
  '@fastify/busboy': ['services/identity/decode/decode.ts'],
  libsql: [
    'services/directory/store/sqlite/store.ts',
    'services/directory/store/sqlite/checkpoints.ts',
    'services/identity/store/sqlite.ts',
  ],
  mongodb: [
    'services/directory/store/mongodb/connection.ts',
    'services/identity/store/mongodb.ts',
    'services/storage/mongodb.ts',
  ],
  // Schemas are written with it, so it is imported wherever one is declared.
  typebox: [
    ...[
      'config',
      'gateway/plugin.ts',
      'gateway/testing.ts',
      'gateway/plugins.ts',
      'gateway/identify',
      'gateway/decide',
    ],
    ...['services/directory/schemas', 'services/directory/routes'],
  ],
}

/** The only file that imports modules named by a configuration. */
const IMPORTS_PLUGINS = 'gateway/configured/third-party/load.ts'

/** Only Fastify uses it; it is a dependency of ours because its later versions need a newer Node than this package. */
const HELD_BACK = ['light-my-request']

const holds = (place: string, path: string) => path === place || path.startsWith(`${place}/`)
const placeOf = (path: string) => Object.keys(PLACES).find(place => holds(place, path))

/** What is wrong with the file at `path` (from the project's root), one sentence each. */
function faults(path: string, text: string): string[] {
  const place = placeOf(path)
  if (!place) return [`${path} is in no place the table names`]
  if (!path.endsWith('.ts')) return []
  return importsOf(path, text)
    .filter(asked => !(asked.own ? mayKnow(place, asked) : mayUse(path, asked)))
    .map(asked => `${path} may not import ${asked.target} (${asked.manner})`)
}

function mayKnow(place: string, { target, manner }: Import): boolean {
  const { value = [], types = [], dynamic = [] } = PLACES[place] ?? {}
  if (target === OTEL_HOME && manner === 'value') return false
  const known = [place, ...(manner === 'dynamic' ? dynamic : value), ...(manner === 'types' ? types : [])]
  return known.some(other => holds(other, target))
}

function mayUse(path: string, { target, manner }: Import): boolean {
  if (path === IMPORTS_PLUGINS && target.startsWith('an expression')) return true
  const homes = HOMES[target] ?? []
  return homes.some(
    home => holds(home, path) || (manner === 'types' && posix.dirname(home) === posix.dirname(path)),
  )
}

/** Every file of the source folders, as paths from the project's root. */
function listSources(): string[] {
  return ['gateway', 'services', 'config', 'tools', 'webhooks']
    .flatMap(folder => readdirSync(join(root, folder), { withFileTypes: true, recursive: true }))
    .filter(entry => entry.isFile())
    .map(entry => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
}

t.test('every source file is in a named place and imports only what that place may know', async t => {
  const files = listSources()
  t.ok(files.length > 50, 'the source files were found')
  t.same(
    files.flatMap(path => faults(path, projectFile(path))),
    [],
  )
})

t.test('no files import each other in a circle of values', async t => {
  const imported = new Map(
    listSources()
      .filter(path => path.endsWith('.ts'))
      .map(path => {
        const own = importsOf(path, projectFile(path)).filter(({ own, manner }) => own && manner === 'value')
        return [path, own.map(({ target }) => target)] as const
      }),
  )
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' → '))
    if (done.has(path)) return
    done.add(path)
    for (const target of imported.get(path) ?? []) visit(target, [...way, path])
  }
  for (const path of imported.keys()) visit(path, [])
  t.same(circles, [])
})

t.test('every place and home in the tables exists', async t => {
  const files = listSources()
  const missing = [...Object.keys(PLACES), ...Object.values(HOMES).flat()].filter(
    place => !files.some(path => holds(place, path)),
  )
  t.same(missing, [])
})

t.test('every dependency has a home, and every home imports its dependency', async t => {
  const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(
    projectFile('package.json'),
  ) as Record<'dependencies' | 'optionalDependencies' | 'peerDependencies', Record<string, string>>
  const all = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
  t.same(all.sort(), [...Object.keys(HOMES), ...HELD_BACK].sort())

  const imported = new Set(
    listSources()
      .filter(path => path.endsWith('.ts'))
      .flatMap(path => importsOf(path, projectFile(path)).map(({ target }) => `${target} in ${path}`)),
  )
  const oneFileHomes = Object.entries(HOMES).flatMap(([name, homes]) =>
    homes.filter(home => home.endsWith('.ts')).map(home => `${name} in ${home}`),
  )
  t.same(
    oneFileHomes.filter(home => !imported.has(home)),
    [],
  )
})

t.test('a forbidden import is reported, whatever its syntax', async t => {
  for (const [path, text] of [
    ['gateway/listen/server.ts', "import { match } from '../policy/policy.js'"],
    ['gateway/listen/server.ts', "import type { Trie } from '../policy/trie.js'"],
    ['gateway/listen/server.ts', "export * from '../policy/trie.js'"],
    ['gateway/listen/server.ts', "type Trie = import('../policy/trie.js').Trie"],
    ['gateway/decide/decide.ts', "import type { Settings } from '../../config/schema/gateway.js'"],
    ['gateway/policy/compile.ts', "import type { Gateway } from '../../config/schema/gateway.js'"],
    ['gateway/pipeline/pipeline.ts', "import { decide } from '../decide/decide.js'"],
    ['gateway/run/start.ts', "import { start } from '../../services/identity/index.js'"],
    ['gateway/policy/policy.ts', "await import('../../services/identity/index.js')"],
    ['tools/cli.ts', "import { start } from '../services/identity/index.js'"],
    ['gateway/run/serve.ts', "const name = 'x'\nawait import(name)"],
    ['config/load.ts', "import type { Plan } from '../gateway/types.js'"],
    ['config/words/words.ts', "import { Duration } from '../schema/duration.js'"],
    ['services/identity/index.ts', "import { open } from '../directory/store/sqlite.js'"],
    ['services/directory/index.ts', "import { GatewayError } from '../../gateway/errors.js'"],
    ['services/directory/index.ts', "import { Redis } from 'ioredis'"],
    ['gateway/forward/reject.ts', "import { request } from 'undici'"],
    ['gateway/decide/decide.ts', "import type { Redis } from 'ioredis'"],
    ['gateway/forward/proxy.ts', "import { left } from 'left-pad'"],
    ['gateway/run/core.ts', "import { openOtel } from '../observe/tracing/otel.js'"],
  ] as const) {
    t.equal(faults(path, text).length, 1, `${path}: ${text}`)
  }
})

t.test('a file outside the named places is reported, whatever it contains', async t => {
  t.same(faults('gateway/cache/cache.ts', ''), ['gateway/cache/cache.ts is in no place the table names'])
  t.same(faults('services/billing/notes.md', ''), [
    'services/billing/notes.md is in no place the table names',
  ])
  t.same(faults('gateway/helpers.ts', ''), ['gateway/helpers.ts is in no place the table names'])
})

t.test('imports that the design allows are not reported', async t => {
  for (const [path, text] of [
    [
      'gateway/decide/redis/connection.ts',
      "import { Redis } from 'ioredis'\nimport { key } from '../key.js'",
    ],
    ['gateway/policy/compile.ts', "import type { Rule } from '../types.js'"],
    ['gateway/decide/decide.ts', "import { PLANS } from '../../config/words/words.js'"],
    [
      'gateway/run/serve.ts',
      "await import('../../services/identity/index.js')\nimport { build } from './start.js'",
    ],
    ['gateway/pipeline/pipeline.ts', "import type { Rejection } from '../forward/reject.js'"],
    ['services/identity/store/sqlite.ts', "import Database from 'libsql'\nimport 'node:fs'"],
  ] as const) {
    t.same(faults(path, text), [])
  }
})
