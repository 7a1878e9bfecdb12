/** Whatever nginx serves from one location is counted in one bucket, however the path is spelt. */
import { Agent } from 'node:http'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { type Received, send, startApp } from '../../helpers/http.js'
import { nginxWith } from '../../helpers/nginx.js'
import { waitUntil } from '../../helpers/wait.js'
import { WaitingApp } from '../../helpers/waiting-app.js'

/** A location of nginx, with the path as nginx sees it: unescaped. */
interface Resource {
  readonly path: string
  readonly below?: boolean
}
const RESOURCES: readonly Resource[] = [
  { path: '/sessions/whoami' },
  { path: '/a@b' },
  { path: '/users/ann+lee@example.org' },
  { path: "/!$&'()*,=:/x~y-z_1.2" },
  { path: '/*' },
  { path: '/menu/caf\u00e9' },
  { path: '/{id}/50%/a?b#c d' },
  { path: '/%40' },
  { path: '/v;1' },
  { path: '/scim', below: true },
  { path: '/a,b', below: true },
]

/** The path as a pattern writes it. */
function patternOf({ path, below }: Resource): string {
  const escaped = encodeURI(path).replace(/[?#]/g, encodeURIComponent).replaceAll('*', '%2A')
  return below ? `${escaped}/**` : escaped
}
const POLICY = `version: 1
kind: project-limits
buckets:
${RESOURCES.map((resource, i) => `  b${i}: [${JSON.stringify(patternOf(resource))}]`).join('\n')}
  none: ["*"]
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas:
${[...RESOURCES.keys()]
  .map(i => `b${i}`)
  .concat('none')
  .map(bucket => `      ${bucket}: { burst: 100000, sustained: 1000000 }`)
  .join('\n')}
`
const LOCATIONS = RESOURCES.map(({ path, below }) => `${below ? '' : '= '}"${path}${below ? '/' : ''}"`)

function asking(t: Test): (url: string, target: string) => Promise<Received> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return (url, target) => send(url, { path: target, agent, headers: { host: 'acme.localhost' } } as never)
}

const bucketOf = ({ headers }: Received) =>
  /"([a-z0-9]+)\.burst"/.exec(String(headers['ratelimit-policy']))?.[1]
const leftOf = ({ headers }: Received) => Number(/\.sustained";r=(\d+)/.exec(String(headers.ratelimit))?.[1])

const BETWEEN = [
  '/',
  '/',
  '/',
  '/',
  '//',
  '/./',
  '/%2e/',
  '/x/../',
  '/x;y/%2E./',
  '///.//',
  '/%40/..//',
  '%2F',
]

/** A spelling of the path: any character may be escaped, in either case, with extra slashes and dots. */
const spellingOf = ({ path, below }: Resource) =>
  fc.infiniteStream(fc.nat(59)).map(dice => {
    const die = () => dice.next().value as number
    const spell = (byte: number) => {
      const character = String.fromCharCode(byte)
      if (character === '/') return BETWEEN[die() % BETWEEN.length]
      const hex = byte.toString(16).padStart(2, '0')
      const choice = die() % 6
      if (choice === 0) return `%${hex}`
      if (choice === 1 || !/[!-~]/.test(character) || /[%?#]/.test(character)) return `%${hex.toUpperCase()}`
      return character
    }
    const tail = below ? ['/', '/Users', '/a/%40/b', '/%3F'][die() % 4] : ''
    return [...Buffer.from(path)].map(spell).join('') + tail
  })

t.test('nginx and the gateway agree on which resource a path names', async t => {
  const upstream = await nginxWith(t, LOCATIONS)
  if (upstream === undefined) return
  const gateway = await testGateway(t, {
    upstream,
    policies: { 'limits.yaml': POLICY },
    upstreamSettings: 'pathParameters: refuse',
  })
  const ask = asking(t)
  const left = new Map<string, number>()
  const seen = { counted: 0, refused: 0, elsewhere: 0 }

  /**
   * Whatever nginx serves for this target, or for what we forward for it, is counted in its bucket; or the request is
   * refused.
   */
  const agree = async (target: string): Promise<boolean> => {
    const direct = await ask(upstream, target)
    const answer = await ask(gateway.url, target)
    if (answer.status === 400) {
      seen.refused += 1
      return direct.status === 400 || answer.json().code === 'bad-target'
    }
    const bucket = bucketOf(answer) as string
    const before = left.get(bucket)
    left.set(bucket, leftOf(answer))
    if (before !== undefined && leftOf(answer) !== before - 1) return false
    seen[direct.status === 200 ? 'counted' : 'elsewhere'] += 1
    return [direct, answer].every(({ status, body }) => status !== 200 || bucket === `b${body}`)
  }

  await t.test('the plain spelling of every resource is counted in its bucket', async t => {
    for (const [i, resource] of RESOURCES.entries()) {
      const plain = patternOf(resource).replace('/**', '/x')
      t.equal((await ask(upstream, plain)).body, String(i), plain)
      if (!plain.includes(';')) t.equal(bucketOf(await ask(gateway.url, plain)), `b${i}`, plain)
    }
  })

  left.clear()
  await t.test('every spelling of a resource is counted in its one bucket, or refused', async t => {
    await fc.assert(fc.asyncProperty(fc.constantFrom(...RESOURCES).chain(spellingOf), agree), {
      numRuns: 400,
    })
    t.ok(seen.counted > 100 && seen.refused > 20, JSON.stringify(seen))
  })

  await t.test('random paths are never counted in the bucket of another resource', async t => {
    const parts = RESOURCES.flatMap(({ path }) => path.slice(1).split('/').map(encodeURIComponent))
    const piece = fc.oneof(
      fc.constantFrom(...parts),
      fc.constantFrom(
        '.',
        '..',
        '%2e%2E',
        '',
        '%',
        '%25',
        '%2540',
        ';',
        '%3b',
        '*',
        '%2a',
        '@',
        '%5C',
        '%00',
        '%ff',
      ),
      fc.nat(255).map(byte => `%${byte.toString(16).padStart(2, '0')}`),
    )
    const glue = fc.constantFrom('/', '/', '/', '//', '%2F', '')
    const target = fc.array(fc.tuple(glue, piece), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(target, parts => agree(`/${parts.flat().join('')}`)),
      { numRuns: 300 },
    )
    t.ok(seen.elsewhere > 30, JSON.stringify(seen))
  })
})

t.test('eight spellings of one path share the slots of one key', async t => {
  const app = new WaitingApp()
  const upstream = await startApp(t, app.handler)
  const policy = `version: 1
kind: in-flight
rules: [{ id: work, match: [POST /**], key: [project, full-path], max: 2 }]
`
  const { url } = await testGateway(t, {
    upstream,
    timeouts: '{ head: 20s }',
    policies: { 'in-flight.yaml': policy },
  })
  const post = (path: string, wait: boolean) =>
    send(url, {
      path,
      method: 'POST',
      headers: { host: 'acme.localhost', ...(wait && { 'x-wait': '1' }) },
    } as never)
  const spellings = ['/a@b', '/a%40b', '/%61@b', '/%61%40%62', '//a@b', '/./a%40b', '/x/../a@%62', '/a%40b/']
  const held = spellings.slice(0, 2).map(path => post(path, true))
  await waitUntil('both slots to be held', () => app.waiting.length === 2)
  for (const path of spellings) t.equal((await post(path, false)).status, 429, path)
  t.equal((await post('/a%3Bb', false)).status, 200, 'another path has slots of its own')
  app.finish()
  for (const { status } of await Promise.all(held)) t.equal(status, 200)
})
