import { createHash } from 'node:crypto'
import t from 'tap'
import { apiKey } from '../../../gateway/identify/api-key.js'
import { header } from '../../../gateway/identify/header.js'
import { host } from '../../../gateway/identify/host.js'
import { identifyBy } from '../../../gateway/identify/identify.js'
import { path } from '../../../gateway/identify/path.js'
import type { KnownProject } from '../../../gateway/plugin.js'
import type { Facts } from '../../../gateway/types.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const tools = { log, plans: ['growth'], environments: ['production'] }

function known(id: string, more: Partial<KnownProject> = {}): KnownProject {
  return { id, plan: 'growth', environment: 'production', hosts: [], paths: [], apiKeyHashes: [], ...more }
}

function facts(given: Partial<Facts>, headers: Record<string, string> = {}): Facts {
  return { host: 'x', path: '/', trusted: false, header: (name: string) => headers[name], ...given } as Facts
}

t.test('host: a project is identified by the whole host name, in any case', async t => {
  const { identify } = host.create({}, { ...tools, projects: [known('acme', { hosts: ['Acme.localhost'] })] })
  t.equal(identify(facts({ host: 'acme.localhost' }))?.id, 'acme')
  t.equal(identify(facts({ host: 'evil.acme.localhost' })), undefined)
})

t.test('header: a project is identified only from a trusted hop, and only when it is configured', async t => {
  const { identify } = header.create({ header: 'X-Project' }, { ...tools, projects: [known('acme')] })
  t.equal(identify(facts({ trusted: true }, { 'x-project': 'acme' }))?.id, 'acme')
  t.equal(identify(facts({ trusted: false }, { 'x-project': 'acme' })), undefined)
  t.equal(identify(facts({ trusted: true }, { 'x-project': 'nobody' })), undefined)
  t.equal(identify(facts({ trusted: true })), undefined)
})

t.test('api-key: a project is identified by its key, of which only the hash is configured', async t => {
  const hash = createHash('sha256').update('k3y').digest('hex')
  const projects = [known('acme', { apiKeyHashes: [hash] })]
  const plain = apiKey.create({ header: 'x-api-key' }, { ...tools, projects })
  t.equal(plain.identify(facts({}, { 'x-api-key': 'k3y' }))?.id, 'acme')
  t.equal(plain.identify(facts({}, { 'x-api-key': hash })), undefined)
  t.equal(plain.identify(facts({})), undefined)
  const bearer = apiKey.create({ header: 'authorization' }, { ...tools, projects })
  t.equal(bearer.identify(facts({}, { authorization: 'Bearer k3y' }))?.id, 'acme')
})

t.test('path: a project is identified by the longest prefix of whole segments', async t => {
  const projects = [
    known('acme', { paths: ['/acme'] }),
    known('labs', { paths: ['/acme/labs/'] }),
    known('rest', { paths: ['/'] }),
  ]
  const { identify } = path.create({}, { ...tools, projects })
  const ids = ['/acme', '/acme/x', '/acme/labs/x', '/acmes', '/'].map(
    one => identify(facts({ path: one }))?.id,
  )
  t.strictSame(ids, ['acme', 'acme', 'labs', 'rest', 'rest'])
})

t.test('identifiers are asked in order, and an unknown project is counted by client or rejected', async t => {
  const first = { identify: ({ path }: Facts) => (path === '/1' ? known('first') : undefined) }
  const second = { identify: ({ path }: Facts) => (path === '/none' ? undefined : known('second')) }
  const identify = identifyBy([first, second], 'developer')
  t.equal(identify(facts({ path: '/1' })).id, 'first')
  t.equal(identify(facts({ path: '/2' })).id, 'second')
  t.match(identify(facts({ path: '/none', network: '192.0.2.1' })), {
    id: 'client:192.0.2.1',
    plan: 'developer',
  })
  const strict = identifyBy([first], 'reject')
  t.throws(() => strict(facts({})), { code: 'unknown-project' })
})
