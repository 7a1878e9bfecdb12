import { createHash } from 'node:crypto'
import t from 'tap'
import { apiKey } from '../../../gateway/identify/api-keys/api-key.js'
import { header } from '../../../gateway/identify/header.js'
import { host } from '../../../gateway/identify/host.js'
import { type AskedIdentifier, contained, identifyBy } from '../../../gateway/identify/identify.js'
import { path } from '../../../gateway/identify/path.js'
import { UncheckedCredential } from '../../../gateway/identify/unchecked.js'
import type { Identifier, KnownProject } from '../../../gateway/plugin.js'
import type { Facts } from '../../../gateway/types.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }
const tools = { log, plans: ['growth'], environments: ['production'], folder: '.' }

function known(id: string, more: Partial<KnownProject> = {}): KnownProject {
  return { id, plan: 'growth', environment: 'production', hosts: [], paths: [], apiKeyHashes: [], ...more }
}

function facts(given: Partial<Facts>, headers: Record<string, string> = {}): Facts {
  return { host: 'x', path: '/', trusted: false, header: (name: string) => headers[name], ...given } as Facts
}

t.test('host: a project is identified by the whole host name, in any case', async t => {
  const { identify } = host.create({}, { ...tools, projects: [known('acme', { hosts: ['Acme.localhost'] })] })
  t.match(identify(facts({ host: 'acme.localhost' })), { id: 'acme' })
  t.equal(identify(facts({ host: 'evil.acme.localhost' })), undefined)
})

t.test('header: a project is identified only from a trusted hop, and only when it is configured', async t => {
  const { identify } = header.create({ header: 'X-Project' }, { ...tools, projects: [known('acme')] })
  t.match(identify(facts({ trusted: true }, { 'x-project': 'acme' })), { id: 'acme' })
  t.equal(identify(facts({ trusted: false }, { 'x-project': 'acme' })), undefined)
  t.equal(identify(facts({ trusted: true }, { 'x-project': 'nobody' })), undefined)
  t.equal(identify(facts({ trusted: true })), undefined)
})

t.test('api-key: a project is identified by its key, of which only the hash is configured', async t => {
  const hash = createHash('sha256').update('k3y').digest('hex')
  const projects = [known('acme', { apiKeyHashes: [hash] })]
  const plain = apiKey.create({ header: 'x-api-key', strip: false }, { ...tools, projects })
  t.match(plain.identify(facts({}, { 'x-api-key': 'k3y' })), { id: 'acme' })
  t.match(plain.identify(facts({}, { 'x-api-key': hash })), { reason: 'unknown key' })
  t.equal(plain.identify(facts({})), undefined)
  const bearer = apiKey.create({ header: 'authorization', strip: false }, { ...tools, projects })
  t.match(bearer.identify(facts({}, { authorization: 'Bearer k3y' })), { id: 'acme' })
})

t.test('path: a project is identified by the longest prefix of whole segments', async t => {
  const projects = [
    known('acme', { paths: ['/acme'] }),
    known('labs', { paths: ['/acme/labs/'] }),
    known('rest', { paths: ['/'] }),
  ]
  const { identify } = path.create({}, { ...tools, projects })
  const ids = ['/acme', '/acme/x', '/acme/labs/x', '/acmes', '/'].map(
    one => (identify(facts({ path: one })) as KnownProject).id,
  )
  t.strictSame(ids, ['acme', 'acme', 'labs', 'rest', 'rest'])
})

/** An identifier of the configuration that answers by the path of the request. */
function asked(
  answers: Readonly<Record<string, ReturnType<Identifier['identify']>>>,
  { name = 'one', verifies = false } = {},
): AskedIdentifier {
  return contained({ identify: ({ path }) => answers[path] }, { name, verifies }, log)
}

t.test('identifiers are asked in order, and an unknown project is counted by client or rejected', async t => {
  const first = asked({ '/1': known('first') })
  const second = asked({ '/1': known('second'), '/2': known('second') })
  const identify = identifyBy([first, second], 'developer')
  const projectOf = async (path: string) =>
    (await identify(facts({ path, network: '192.0.2.1' }), false)).project
  t.match(await projectOf('/1'), { id: 'first' })
  t.match(await projectOf('/2'), { id: 'second' })
  t.match(await projectOf('/none'), { id: 'client:192.0.2.1', plan: 'developer' })
  const strict = await identifyBy([first], 'reject')(facts({}), false)
  t.equal(strict.project, undefined)
})

t.test('identifiers that answer at once are not waited for; one that must ask somebody is', async t => {
  const late = asked({ '/late': Promise.resolve(known('late')) })
  const identify = identifyBy([late, asked({ '/late': known('next'), '/now': known('now') })], 'developer')
  t.notOk(identify(facts({ path: '/now' }), false) instanceof Promise)
  const answer = identify(facts({ path: '/late' }), false)
  t.ok(answer instanceof Promise)
  t.match(await answer, { project: { id: 'late' }, identifier: 'one', credential: 'none' })
})

t.test('what is said of the credential: none, invalid, verified or unchecked', async t => {
  const wrong = { wrongCredential: 'secret', reason: 'expired' }
  const keys = asked(
    {
      ...{ '/right': known('acme'), '/wrong': wrong, '/late-wrong': Promise.resolve(wrong) },
      '/broken': Promise.reject(new Error('away')),
    },
    { name: 'keys', verifies: true },
  )
  const hosts = asked({ '/none': known('host'), '/wrong': known('host') }, { name: 'hosts' })
  const identify = identifyBy([keys, hosts], 'developer')
  const says = async (path: string, required: boolean) => {
    const { project, ...rest } = await identify(facts({ path, network: '192.0.2.1' }), required)
    return { project: project?.id, ...rest }
  }
  const own = { identifier: 'keys', credential: 'verified', wrong: undefined, guess: undefined, stripped: [] }
  t.strictSame(await says('/right', false), { project: 'acme', ...own })
  t.strictSame(await says('/right', true), { project: 'acme', ...own })
  t.match(await says('/none', false), { project: 'host', identifier: 'hosts', credential: 'none' })
  t.match(await says('/wrong', false), { project: 'host', identifier: 'hosts', credential: 'invalid', wrong })
  t.match(await says('/broken', false), { project: 'client:192.0.2.1', credential: 'unchecked' })
  t.match(
    await says('/none', true),
    { project: undefined, credential: 'none' },
    'a host is no credential where one is required',
  )
  t.match(await says('/wrong', true), { project: undefined, credential: 'invalid', wrong })
  t.match(await says('/late-wrong', true), { project: undefined, credential: 'invalid', wrong })
  t.match(await says('/broken', true), { project: undefined, credential: 'unchecked' })
})

t.test(
  'a header that is stripped is, whoever found the caller; with a scheme, only if it begins so',
  async t => {
    const finds = contained({ identify: () => known('acme') }, { name: 'finds' }, log)
    const strips = (
      of: string | { header: string; scheme: string },
      said: ReturnType<Identifier['identify']>,
    ) => contained({ identify: () => said }, { name: 'strips', verifies: true, strips: of }, log)
    const late = strips({ header: 'authorization', scheme: 'Api-Key' }, undefined)
    const stripped = async (identifiers: AskedIdentifier[], authorization?: string) => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
      return (await identifyBy(identifiers, 'developer')(facts({}, headers), false)).stripped
    }
    t.strictSame(await stripped([finds, late], 'api-key abc'), ['authorization'])
    t.strictSame(await stripped([finds, late], 'Api-Keys abc'), [])
    t.strictSame(await stripped([finds, late], 'Bearer abc'), [])
    t.strictSame(await stripped([finds, late]), [])
    t.strictSame(await stripped([finds, strips('authorization', undefined)], 'Bearer abc'), ['authorization'])
    for (const hidden of [
      'Bearer abc, Api-Key abc',
      'Bearer abc,api-key\tabc',
      'Api-Key\tabc',
      'Api-Key: abc',
    ]) {
      t.strictSame(await stripped([finds, late], hidden), ['authorization'], hidden)
      t.strictSame(await stripped([late, finds], hidden), ['authorization'], `${hidden}, not found`)
    }
    t.strictSame(await stripped([late, finds], 'Bearer abc, Api-Keys abc'), [])
    t.strictSame(await stripped([late, finds], 'Api-Key abc'), [], 'not its own')
    const silent = strips('authorization', undefined)
    t.strictSame(await stripped([silent, finds], 'Bearer abc'), [], 'asked, it says that none is its own')
  },
)

t.test('a wrong credential is a guess unless it may be right for one that could not say', async t => {
  const says = (said: () => ReturnType<Identifier['identify']>) =>
    contained({ identify: said }, { name: 'one', verifies: true }, log)
  const wrong = (text: string, mayBeRight = false) =>
    says(() => ({ wrongCredential: text, reason: 'wrong', mayBeRight }))
  const away = (text: string) => says(() => Promise.reject(new UncheckedCredential(text, new Error('away'))))
  const failing = says(() => Promise.reject(new Error('away')))
  const guess = async (...identifiers: AskedIdentifier[]) =>
    (await identifyBy(identifiers, 'reject')(facts({}), true)).guess
  t.equal(await guess(wrong('key')), 'key')
  t.equal(await guess(wrong('key'), away('token')), 'key')
  t.equal(await guess(wrong('token', true), wrong('key')), 'key', 'a made-up token hides no guess')
  t.equal(await guess(wrong('token'), away('token')), undefined, 'the issuer that is away may know it')
  t.equal(await guess(wrong('token'), wrong('token', true)), undefined)
  t.equal(await guess(wrong('token'), failing), undefined)
})
