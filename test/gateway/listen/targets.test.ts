/** Every spelling that a router behind the gateway maps to one resource is counted by that resource's one counter. */
import { Agent } from 'node:http'
import fc from 'fast-check'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { type Received, send } from '../../helpers/http.js'

const POLICY = `version: 1
kind: project-limits
buckets:
  whoami: [/sessions/whoami]
  list: [GET /admin/identities]
  recovery: [POST /admin/recovery/*]
  scim: [/scim/**]
  composed: [/menu/caf%C3%A9]
  decomposed: [/menu/cafe%CC%81]
  others: ["*"]
limits:
  - for: [{ environments: [development, staging, production] }]
    quotas:
${['whoami', 'list', 'recovery', 'scim', 'composed', 'decomposed', 'others']
  .map(bucket => `      ${bucket}: { burst: 100000, sustained: 1000000 }`)
  .join('\n')}
`

/** A resource: its plain spelling, the route that serves it, and the bucket that counts it. */
const RESOURCES = [
  { method: 'GET', path: '/sessions/whoami', route: '/sessions/whoami', bucket: 'whoami' },
  { method: 'GET', path: '/admin/identities', route: '/admin/identities', bucket: 'list' },
  { method: 'POST', path: '/admin/recovery/link', route: '/admin/recovery/:kind', bucket: 'recovery' },
  { method: 'GET', path: '/scim/Users/1', route: '/scim/*', bucket: 'scim' },
  { method: 'GET', path: '/menu/caf%C3%A9', route: '/menu/café', bucket: 'composed' },
  { method: 'GET', path: '/menu/cafe%CC%81', route: '/menu/cafe\u0301', bucket: 'decomposed' },
] as const

/** The router of the embedded services, configured as they do, and as leniently as possible. */
const ROUTERS = {
  'with the services’ settings': { ignoreTrailingSlash: true },
  'with lenient settings': { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
}

/** An upstream that reports in `x-route` which of its routes served a request. */
async function routed(t: Test, routerOptions: object): Promise<string> {
  const app = fastify({ routerOptions })
  for (const { method, route } of RESOURCES) {
    app.route({
      method,
      url: route,
      handler: (_req, reply) => reply.header('x-route', encodeURI(route)).send(''),
    })
  }
  t.teardown(() => app.close())
  return app.listen({ host: '127.0.0.1', port: 0 })
}

interface Asked {
  readonly method: string
  /** As written in the request line. */
  readonly target: string
}

function asking(t: Test): (url: string, asked: Asked) => Promise<Received> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return (url, { method, target }) => {
    const { hostname, port } = new URL(url)
    return send(url, {
      method,
      path: target,
      hostname,
      port,
      agent,
      headers: { host: 'acme.localhost' },
    } as never)
  }
}

const bucketOf = ({ headers }: Received): string =>
  /"([a-z]+)\.burst"/.exec(String(headers['ratelimit-policy']))?.[1] ?? ''
const leftOf = ({ headers }: Received): number =>
  Number(/\.sustained";r=(\d+)/.exec(String(headers.ratelimit))?.[1])

/** Another spelling of the path; the dice decide for each character. */
function respelled(path: string, dice: Iterator<number>, withinSlashes: readonly string[]): string {
  const throwDie = (): number => dice.next().value as number
  let spelt = ''
  for (let i = 0; i < path.length; i++) {
    const character = path[i] as string
    if (character === '/') spelt += withinSlashes[throwDie() % withinSlashes.length]
    else if (character === '%') {
      const hex = path.slice(i, i + 3)
      spelt += throwDie() % 2 === 0 ? hex : hex.toLowerCase()
      i += 2
    } else {
      const hex = `%${character.charCodeAt(0).toString(16)}`
      const die = throwDie() % 6
      spelt += die === 0 ? hex : die === 1 ? hex.toUpperCase() : character
    }
  }
  return spelt
}

const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i
const SLASHES = ['/', '/', '//', '/./', '/x/../', '/%2e/', '/y/%2E%2e/', '///', '/.//', '/a/b/../.././']

for (const [name, routerOptions] of Object.entries(ROUTERS)) {
  t.test(`behind a router ${name}`, async t => {
    const upstream = await routed(t, routerOptions)
    const gateway = await testGateway(t, { upstream, policies: { 'limits.yaml': POLICY } })
    const ask = asking(t)
    const left = new Map<string, number>()

    /** Whether the request was charged to `bucket` only: its counter has gone down by one. */
    const spends = (answer: Received, bucket: string): boolean => {
      const before = left.get(bucket)
      left.set(bucket, leftOf(answer))
      return bucketOf(answer) === bucket && (before === undefined || leftOf(answer) === before - 1)
    }

    t.test(
      'every spelling of a resource is served as that resource and spends from its one counter',
      async () => {
        const spelling = fc.record({
          resource: fc.constantFrom(...RESOURCES),
          dice: fc.infiniteStream(fc.nat(59)),
          tail: fc.constantFrom('', '', '/', '?a=/../b', '/?x'),
          form: fc.constantFrom('', '', 'http://acme.localhost', 'HTTP://acme.localhost:80'),
          head: fc.boolean(),
        })
        await fc.assert(
          fc.asyncProperty(spelling, async ({ resource, dice, tail, form, head }) => {
            const target = form + respelled(resource.path, dice[Symbol.iterator](), SLASHES) + tail
            const method = head && resource.method === 'GET' ? 'HEAD' : resource.method
            const answer = await ask(gateway.url, { method, target })
            return answer.headers['x-route'] === encodeURI(resource.route) && spends(answer, resource.bucket)
          }),
          { numRuns: 150 },
        )
      },
    )

    t.test('any target is counted in the bucket of the resource it reaches, or gets 400', async t => {
      const bucketOfRoute = new Map<unknown, string>(
        RESOURCES.map(({ route, bucket }) => [encodeURI(route), bucket]),
      )
      const piece = fc.oneof(
        fc.constantFrom(...RESOURCES.flatMap(({ path }) => path.slice(1).split('/'))),
        fc.constantFrom(
          '.',
          '..',
          '%2e',
          '%2E.',
          '',
          ';v=1',
          '%2F',
          '%2f',
          '%5C',
          '\\',
          '%00',
          '%',
          '%25',
          '%252e',
        ),
        fc.constantFrom(
          'caf%E9',
          '%c3%28',
          '%C0%AE',
          'Sessions',
          'whoami%20',
          'whoami%3F',
          '%23',
          'sess%2569ons',
        ),
      )
      const glue = fc.constantFrom('/', '/', '/', '//', '%2F', '%2f', '\\', ';', '')
      const target = fc
        .array(fc.tuple(glue, piece), { minLength: 1, maxLength: 5 })
        .map(parts => `/${parts.flat().join('')}`)
      let served = 0
      let refused = 0
      await fc.assert(
        fc.asyncProperty(target, fc.constantFrom('GET', 'POST'), async (target, method) => {
          // The gateway resolves dot segments before it counts; this router would serve them as if they were names.
          const direct = DOT_SEGMENT.test(target) ? [] : [await ask(upstream, { method, target })]
          const answer = await ask(gateway.url, { method, target })
          const said = answer.status === 400 && answer.json().code
          if (said === 'bad-target') {
            refused += 1
            return true
          }
          served += 1
          const meant = [...direct, answer].flatMap(
            ({ headers }) => bucketOfRoute.get(headers['x-route']) ?? [],
          )
          return meant.every(bucket => bucket === bucketOf(answer)) && spends(answer, bucketOf(answer))
        }),
        { numRuns: 250 },
      )
      t.ok(served > 20 && refused > 20, `${served} served, ${refused} refused`)
    })
  })
}
