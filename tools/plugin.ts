/** `sluice plugin`: creates the files of a new plugin. */
import { existsSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { listed } from '../config/problem.js'
import { nameFault } from '../gateway/configured/third-party/load.js'
import { version } from '../gateway/run/version.js'
import { didYouMean } from './arguments.js'
import { defineCommand, Unusable } from './command.js'
import { writeNew } from './files.js'
import { printable } from './text.js'

const KINDS = ['limit', 'identify', 'observe'] as const
type Kind = (typeof KINDS)[number]

/** The texts by file name. */
function pluginFiles(kind: Kind, name: string): Record<string, string> {
  const { code, test } = WRITTEN[kind]
  return {
    'package.json': manifestOf(name),
    'index.js': `// @ts-check\n${code(name)}`,
    'index.test.js': `import assert from 'node:assert/strict'\nimport { test } from 'node:test'\nimport plugin from './index.js'\n\n${test}`,
  }
}

/** Instructions on what to write into the configuration. */
function usageOf(kind: Kind, name: string): string {
  const list = `plugins: [./${name}]`
  if (kind === 'limit') {
    return `In gateway.yaml, with the path as seen from there:
  ${list}
In policies/${name}.yaml:
  version: 1
  kind: ${name}
  rules:
    - { id: my-${name}, match: [POST /**], key: [client-ip], requests: 10 }
`
  }
  const setting = kind === 'identify' ? `identify: [${name}, host]` : `observe: [${name}]`
  return `In gateway.yaml, with the path as seen from there:
  ${list}
  ${setting}
`
}

function manifestOf(name: string): string {
  const manifest = {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    exports: './index.js',
    scripts: { test: 'node --test' },
    peerDependencies: { sluicegate: `^${version()}` },
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

const WRITTEN: Readonly<Record<Kind, { readonly code: (name: string) => string; readonly test: string }>> = {
  limit: {
    code: name => `import { Duration, definePlugin, Type } from 'sluicegate'

/** Returns what a rule of kind "${name}" counts. The gateway does the counting, in this process or in Redis. */
export default definePlugin({
  name: '${name}',
  kind: 'limit',
  schema: Type.Object({
    requests: Type.Integer({ minimum: 1, description: 'Requests allowed for each key.' }),
    per: Duration({ default: '1m', unit: '1s', description: 'Length of the window, which begins with the first request.' }),
  }),
  create: () => ({
    demand({ rule }) {
      const { requests, per } = rule.config
      return { kind: 'meter', quota: requests, ms: per, blockMs: 0 }
    },
  }),
})
`,
    test: `test('a rule counts its requests in its window', () => {
  const rule = { config: { requests: 10, per: 60_000 } }
  const demand = plugin.create({}).demand({ rule })
  assert.deepEqual(demand, { kind: 'meter', quota: 10, ms: 60_000, blockMs: 0 })
})
`,
  },
  identify: {
    code: name => `import { definePlugin, Type } from 'sluicegate'

/** Finds the project of a request by asking a service whose session it is. */
export default definePlugin({
  name: '${name}',
  kind: 'identify',
  verifies: true,
  challenge: () => 'Bearer',
  schema: Type.Object({
    url: Type.String({ default: 'http://127.0.0.1:4000/session', description: 'Gets the Authorization of a request; answers {"project": "ID"}, or 401.' }),
  }),
  create({ url }, { projects }) {
    const byId = new Map(projects.map(project => [project.id, project]))
    return {
      // Undefined: the next identifier is tried. What fails or takes longer than 2 s counts as not known.
      async identify(facts) {
        const authorization = facts.header('authorization')
        if (authorization === undefined) return undefined
        const answer = await fetch(url, { headers: { authorization }, signal: AbortSignal.timeout(1500) })
        if (answer.status === 401) return { wrongCredential: authorization, reason: 'no session' }
        if (!answer.ok) throw new Error(\`\${url} answers \${answer.status}\`)
        const { project } = await answer.json()
        return byId.get(project)
      },
    }
  },
})
`,
    test: `test('the service says whose session it is', async t => {
  const acme = { id: 'acme', plan: 'growth', environment: 'production' }
  const { identify } = plugin.create({ url: 'http://127.0.0.1:4000/session' }, { projects: [acme] })
  const asking = authorization => identify({ header: () => authorization })
  t.mock.method(globalThis, 'fetch', async (_url, { headers }) =>
    headers.authorization === 'Bearer right' ? Response.json({ project: 'acme' }) : new Response('', { status: 401 }),
  )
  assert.equal(await asking('Bearer right'), acme)
  assert.deepEqual(await asking('Bearer wrong'), { wrongCredential: 'Bearer wrong', reason: 'no session' })
  assert.equal(await asking(undefined), undefined)
})
`,
  },
  observe: {
    code: name => `import { definePlugin, Type } from 'sluicegate'

/** Is called for every finished request and logs the slow ones. */
export default definePlugin({
  name: '${name}',
  kind: 'observe',
  schema: Type.Object({
    slowMs: Type.Integer({ default: 1000, minimum: 1, description: 'Requests that take at least this many milliseconds are slow.' }),
  }),
  create: ({ slowMs }, { log }) => ({
    finished({ method, status, upstream, durationMs }) {
      if (durationMs >= slowMs) log.warn({ method, status, upstream, durationMs }, 'a slow request')
    },
  }),
})
`,
    test: `test('slow requests are logged, quick ones are not', () => {
  const lines = []
  const { finished } = plugin.create({ slowMs: 100 }, { log: { warn: fields => lines.push(fields) } })
  finished({ method: 'GET', status: 200, upstream: 'app', durationMs: 99 })
  finished({ method: 'GET', status: 200, upstream: 'app', durationMs: 100 })
  assert.deepEqual(lines, [{ method: 'GET', status: 200, upstream: 'app', durationMs: 100 }])
})
`,
  },
}

export const plugin = defineCommand({
  name: 'plugin',
  summary: 'Create a plugin of your own',
  operands: { usage: 'new NAME', least: 2, most: 2 },
  options: {
    kind: {
      type: 'string',
      value: KINDS.join('|'),
      default: 'limit',
      help: 'what it does: limit requests, identify who asks, or observe what was answered',
    },
  },
  details: `Writes the folder NAME with the plugin, a test and a package.json, in plain JavaScript that an editor can check. Never overwrites anything. docs/plugins.md explains what a plugin can do; "sluice serve --watch" restarts when you change it.`,
  example: 'sluice plugin new upload-budget --kind limit\nsluice plugin new sessions --kind identify',
  async run({ values, positionals: [action, name = ''] }, io) {
    if (action !== 'new') throw new Unusable(`"plugin" knows "new", not "${printable(action ?? '')}".`)
    const kind = kindOf(values.kind)
    const fault = nameFault(kind, name) ?? packageNameFault(name)
    if (fault !== undefined) throw new Unusable(`"${printable(name)}" cannot be a plugin's name: ${fault}.`)
    if (existsSync(name)) throw new Unusable(`${name} is already there. Nothing was written.`)
    for (const [file, text] of Object.entries(pluginFiles(kind, name))) writeNew(join(name, file), text)
    io.out(`Wrote ${name}, a plugin with its test.

Next:
${isInstalledBeside(name) ? '' : '  npm install sluicegate      # it is not installed here yet\n'}  (cd ${name} && npm test)
${usageOf(kind, name)}`)
    return 0
  },
})

function kindOf(word: string): Kind {
  const kind = KINDS.find(one => one === word)
  if (kind !== undefined) return kind
  throw new Unusable(
    `--kind must be ${listed(KINDS)}, but it is "${printable(word)}".${didYouMean(word, KINDS)}`,
  )
}

/** Rejects names that npm refuses, or that `import` resolves to something else. */
function packageNameFault(name: string): string | undefined {
  if (isBuiltin(name)) return `Node.js has a module called "${name}"`
  if (name === 'sluicegate') return 'it is the name of the package that plugins import'
  return ['node_modules', 'favicon.ico'].includes(name) ? 'npm reserves it' : undefined
}

/** Whether the plugin's own import would be found. */
function isInstalledBeside(folder: string): boolean {
  const folders = createRequire(resolve(folder, 'index.js')).resolve.paths('sluicegate') ?? []
  return folders.some(one => existsSync(join(one, 'sluicegate', 'package.json')))
}
