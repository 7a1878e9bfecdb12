/** Plugins that a test writes as JavaScript, and helpers that run them. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { formatProblem } from '../../../../config/problem.js'
import { type Configuration, load } from '../../../../gateway/configured/load.js'
import { testGateway } from '../../../helpers/gateway.js'
import { send, startApp } from '../../../helpers/http.js'

export const quiet = { debug() {}, info() {}, warn() {}, error() {} }
export const PROJECTS =
  'version: 1\nprojects: [{ id: acme, plan: growth, environment: production, hosts: [acme.localhost] }]\n'

export const SCHEMA = "{ type: 'object', properties: {}, required: [] }"
export const identifyPlugin = (name: string, identify: string, schema = SCHEMA) =>
  `{ name: '${name}', kind: 'identify', schema: ${schema}, create: () => ({ identify: ${identify} }) }`
export const limitPlugin = (name: string, made: string, schema = SCHEMA) =>
  `{ name: '${name}', kind: 'limit', schema: ${schema}, create: () => (${made}) }`
export const rules = (kind: string, ...lines: string[]) =>
  `version: 1\nkind: ${kind}\nrules:\n${lines.map(line => `  - { ${line} }\n`).join('')}`

export function folderWith(t: Test, files: Record<string, string>, settings: string): string {
  const folder = t.testdir({ policies: {} })
  const gateway = `version: 1\nupstreams: { a: { embedded: identity } }\nroutes: [{ path: /**, upstream: a }]\n${settings}`
  for (const [name, text] of Object.entries({
    'gateway.yaml': gateway,
    'projects.yaml': PROJECTS,
    ...files,
  })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

export async function loaded(folder: string): Promise<Configuration> {
  const found = await load(folder, {}, quiet)
  if ('problems' in found) throw new Error(found.problems.map(formatProblem).join('\n'))
  return found
}

/** The problems, each with its place in gateway.yaml. */
export async function problemsOf(folder: string): Promise<string[]> {
  const found = await load(folder, {}, quiet)
  return 'problems' in found
    ? found.problems.map(problem => formatProblem(problem).slice(join(folder, 'gateway.yaml').length + 1))
    : []
}

/** A gateway with plugins written in JavaScript; `policies` are the texts of its policy files. */
export async function misbehaving(t: Test, plugins: string[], settings: string, ...policies: string[]) {
  const folder = t.testdir({ 'p.mjs': `export const plugins = [${plugins.join(', ')}]` })
  const forwarded: string[] = []
  const upstream = await startApp(t, (req, res) => {
    forwarded.push(`${req.method} ${req.url}`)
    res.end('done')
  })
  const gateway = await testGateway(t, {
    upstream,
    projects: PROJECTS,
    settings: `plugins: [${join(folder, 'p.mjs')}]\n${settings}`,
    policies: Object.fromEntries(policies.map((text, i) => [`${i}.yaml`, text])),
  })
  const post = async (path = '/', host = 'acme.localhost') =>
    (await send(gateway.url + path, { method: 'POST', headers: { host } })).status
  const named = (plugin: string) => gateway.lines.filter(line => line.plugin === plugin)
  return { ...gateway, post, named, forwarded }
}
