/** Which refusals of a configuration another try may mend although its files are the same. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { load } from '../../../gateway/configured/load.js'
import { limits } from '../run/reloading.js'

const LOG = { debug() {}, info() {}, warn() {}, error() {} }
const ROUTES = 'routes: [{ path: /**, upstream: app }]'
const gateway = (more = '', routes = ROUTES) =>
  `version: 1\nupstreams: { app: { url: "http://127.0.0.1:9" } }\n${routes}\n${more}\n`
t.test('only what files of plugins say may change while the sources are the same', async t => {
  const folder = t.testdir()
  mkdirSync(join(folder, 'policies'))
  const write = (name: string, text: string | Buffer) => writeFileSync(join(folder, name), text)
  const projects = 'version: 1\nprojects: []\n'
  const refusal = async (files: Readonly<Record<string, string | Buffer>>, env: NodeJS.ProcessEnv = {}) => {
    const whole = { 'gateway.yaml': gateway(), 'projects.yaml': projects, 'policies/limits.yaml': limits() }
    for (const [name, text] of Object.entries({ ...whole, ...files })) write(name, text)
    const loaded = await load(folder, env, LOG)
    if (!('problems' in loaded)) return 'valid'
    return loaded.isFinal === true ? 'final' : 'not final'
  }
  t.equal(await refusal({}), 'valid')
  t.equal(await refusal({ 'projects.yaml': 'version: 2\n' }), 'final')
  t.equal(await refusal({ 'policies/limits.yaml': Buffer.of(0xff) }), 'final', 'a file that is no text')
  t.equal(
    await refusal({ 'policies/limits.yaml': `${limits()}${'#'.repeat(1_100_000)}` }),
    'final',
    'too large',
  )
  const scoped = 'routes: [{ path: /**, upstream: app, scopes: [x] }]'
  t.equal(await refusal({ 'gateway.yaml': gateway('', scoped) }), 'final', 'what only the compiler sees')

  const url = 'upstreams: { app: { url: "${' + 'UP}" } }'
  const named = { 'gateway.yaml': `version: 1\n${url}\n${ROUTES}\n` }
  const file = join(folder, 'up')
  t.equal(await refusal(named, { UP_FILE: file }), 'final')
  const refused = await load(folder, { UP_FILE: file }, LOG)
  t.equal(refused.sources.get(file), 'ENOENT', 'its coming is seen')

  const http = 'identify: [{ plugin: jwt, issuer: "https://a.test", jwks: "http://a.test/jwks" }]'
  t.equal(await refusal({ 'gateway.yaml': gateway(http) }), 'final', 'settings of a plugin')
  const keyed = { 'gateway.yaml': gateway('apiKeys: keys.json\nidentify: [api-key]') }
  write('keys.json', '{bro')
  t.equal(await refusal(keyed), 'not final')
})
