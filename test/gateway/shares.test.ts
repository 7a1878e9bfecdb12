/**
 * `enforceFor`: in force for a share of the keys, the same on every gateway and after every reload; only reported for
 * others.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type TestGateway, testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { onEachStore } from '../helpers/stores.js'

const BASE = `version: 1
kind: project-limits
buckets: { rest: ["*"] }
limits: [{ for: [{}], quotas: { rest: { burst: 1000, sustained: 1000 } } }]
`
const searchFor = (share: string) => `version: 1
kind: project-limits
mode: enforce
enforceFor: ${share}
buckets: { search: [/search] }
limits: [{ for: [{}], quotas: { search: { burst: 1, sustained: 1 } } }]
`
const devicesFor = (share: string) => `version: 1
kind: volumetric
rules:
  - { id: per-device, match: [POST /d], key: ["header:x-device"], missing: deny, quota: { requests: 1, per: 60s }, enforceFor: ${share} }
`

const BY_HOST = 'unknownProject: { plan: developer, environment: production, countBy: host }'
/** Each is a project of its own: this many unknown hosts are counted separately. */
const HOSTS = Array.from({ length: 60 }, (_, i) => `host-${i}.example`)
const DEVICES = Array.from({ length: 60 }, (_, i) => `device-${i}`)

const policiesAt = (share: string) => ({
  'base.yaml': BASE,
  'search.yaml': searchFor(share),
  'devices.yaml': devicesFor(share),
})

/** The projects whose responses name the bucket that is in force for a share. */
async function projectsInside({ url }: TestGateway): Promise<string[]> {
  const inside: string[] = []
  for (const host of HOSTS) {
    const { headers } = await send(`${url}/search`, { headers: { host } })
    const policy = String(headers['ratelimit-policy'])
    if (policy.includes('"search.burst"')) inside.push(host)
    // Outside the share, the next enforced bucket is shown.
    else if (!policy.includes('"rest.burst"')) throw new Error(`${host} is shown ${policy}`)
  }
  return inside
}

const post = (gateway: TestGateway, device: string) =>
  send(`${gateway.url}/d`, { method: 'POST', headers: { host: 'acme.localhost', 'x-device': device } })

/** The devices that are refused, given that each has sent a request before. */
async function devicesInside(gateway: TestGateway): Promise<string[]> {
  const inside: string[] = []
  for (const device of DEVICES) if ((await post(gateway, device)).status === 429) inside.push(device)
  return inside
}

async function reloadWith(gateway: TestGateway, policies: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(policies)) {
    writeFileSync(join(gateway.folder, 'policies', name), text)
  }
  t.match(await gateway.reloader.reload('admin'), { result: 'loaded' })
}

onEachStore(
  t,
  'the same keys are inside a share on two gateways, after a reload, and when the share grows',
  async (t, store) => {
    const settings = (await store.settings(t)) as string
    const upstream = await startApp(t, (req, res) => {
      req.resume().on('end', () => res.end())
    })
    const start = () =>
      testGateway(t, { upstream, settings: `${settings}\n${BY_HOST}`, policies: policiesAt('25%') })
    const [one, other] = await Promise.all([start(), start()])
    const projects = await projectsInside(one)
    t.ok(projects.length > 5 && projects.length < 30, `${projects.length} of 60 projects are inside`)
    t.same(await projectsInside(other), projects)

    for (const gateway of [one, other]) for (const device of DEVICES) await post(gateway, device)
    const devices = await devicesInside(one)
    t.ok(devices.length > 5 && devices.length < 30, `${devices.length} of 60 devices are inside`)
    t.same(await devicesInside(other), devices)

    await reloadWith(one, policiesAt('50%'))
    const more = await projectsInside(one)
    t.ok(more.length > projects.length && more.length < 45, `${more.length} of 60 projects are inside 50%`)
    t.same(
      projects.filter(host => !more.includes(host)),
      [],
      'no project inside the smaller share is outside the larger one',
    )
    const found = await devicesInside(one)
    t.same(
      devices.filter(device => !found.includes(device)),
      [],
    )
    await reloadWith(one, policiesAt('25%'))
    t.same(await projectsInside(one), projects)
  },
)

onEachStore(t, 'outside its share a rule counts and reports, and refuses nothing', async (t, store) => {
  const settings = (await store.settings(t)) as string
  const upstream = await startApp(t, (req, res) => {
    req.resume().on('end', () => res.end())
  })
  const gateway = await testGateway(t, { upstream, settings, policies: policiesAt('50%') })
  for (const device of DEVICES) await post(gateway, device)
  const inside = await devicesInside(gateway)
  const told = (decision: string) => gateway.lines.filter(line => line.decision === decision)
  t.equal(told('deny').length, inside.length)
  t.equal(told('would_deny').length, DEVICES.length - inside.length)
  t.ok(
    told('deny').every(
      ({ rule, mode, enforce_for }) => `${rule} ${mode} ${enforce_for}` === 'per-device enforce 50',
    ),
  )
  t.ok(told('would_deny').every(({ rule, mode }) => `${rule} ${mode}` === 'per-device report-only'))
  const metrics = (await send(`${gateway.adminUrl}/metrics`)).body
  t.match(
    metrics,
    new RegExp(`rule="per-device"[^\\n]*mode="enforce",outcome="limited"} ${inside.length}\\n`),
  )
  t.match(metrics, /rule="per-device"[^\n]*mode="report-only",outcome="would_limit"/)

  const nameless = await send(`${gateway.url}/d`, { method: 'POST', headers: { host: 'acme.localhost' } })
  t.equal(nameless.status, 200, 'a request without the key part is in no share, although missing is deny')
  t.match(told('would_deny').at(-1), { rule: 'per-device', mode: 'report-only' })
})

t.test('an in-flight rule for a share refuses only inside it', async t => {
  const waiting: (() => void)[] = []
  const upstream = await startApp(t, (req, res) => {
    req.resume()
    waiting.push(() => res.end())
  })
  const policies = {
    'slots.yaml':
      'version: 1\nkind: in-flight\nrules: [{ id: one, match: [/w/*], key: [full-path], enforceFor: 50% }]\n',
  }
  const gateway = await testGateway(t, { upstream, policies })
  const sent = Array.from({ length: 20 }, (_, i) =>
    Promise.all(
      [0, 1].map(() =>
        send(`${gateway.url}/w/${i}`, { method: 'POST', headers: { host: 'acme.localhost' } }),
      ),
    ),
  )
  const timer = setInterval(() => {
    for (const end of waiting.splice(0)) end()
  }, 200)
  t.teardown(() => clearInterval(timer))
  const pairs = (await Promise.all(sent)).map(pair =>
    pair
      .map(({ status }) => status)
      .sort()
      .join(),
  )
  const inside = pairs.filter(pair => pair === '200,429').length
  t.ok(inside > 2 && inside < 18, `${inside} of 20 are inside`)
  t.equal(pairs.filter(pair => pair === '200,200').length, 20 - inside)
})

t.test('0% is in force for nobody, and 100% for everybody', async t => {
  const upstream = await startApp(t, (_req, res) => res.end('done'))
  const scene = (share: string) =>
    testGateway(t, { upstream, settings: BY_HOST, policies: policiesAt(share) })
  const without = async ({ url }: TestGateway) =>
    (await send(`${url}/d`, { method: 'POST', headers: { host: 'acme.localhost' } })).status
  const [none, all] = [await scene('0%'), await scene('100%')]
  t.same(await projectsInside(none), [])
  t.same(await projectsInside(all), HOSTS)
  for (const device of DEVICES) for (const gateway of [none, all]) await post(gateway, device)
  t.same(await devicesInside(none), [])
  t.same(await devicesInside(all), DEVICES)
  t.same([await without(none), await without(all)], [200, 429], 'with `missing: deny`, too')
})
