/** Edits of a quota's windows, overrides and plans, as a client experiences them: windows keep their counts by name. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { stores } from '../helpers/stores.js'

const HOUR = '{ name: hour, requests: 50, per: 1h }'
const MONTH = '{ name: month, requests: 60, per: 30d }'

/** The quota of plan growth; the other plans have a burst and the month. */
const limits = (quota: string) => `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits:
  - { for: [{ plans: [growth] }], quotas: { all: ${quota} } }
  - for: [{ plans: [developer, production, essential, scale, enterprise] }]
    quotas: { all: { burst: 30, windows: [${MONTH}] } }
`

const projects = (id: string, rest = '', plan = 'growth') =>
  `version: 1\nprojects: [{ id: ${id}, plan: ${plan}, environment: production, hosts: [${id}.localhost]${rest} }]\n`

let count = 0

for (const store of stores) {
  t.test(`windows are known by name, ${store.name}`, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return
    const upstream = await startApp(t, (_req, res) => void res.end())

    /** A project of its own behind one or more gateways. */
    const start = async (t: Test, ...quotas: readonly string[]) => {
      count += 1
      const id = `names-${count}`
      const gateways = await Promise.all(
        quotas.map(quota =>
          testGateway(t, {
            ...{
              upstream,
              settings: `${settings}\nunknownProject: { plan: growth, environment: production }`,
            },
            policies: { 'limits.yaml': limits(quota) },
            projects: projects(id),
          }),
        ),
      )
      const [gateway] = gateways as [(typeof gateways)[0]]
      return {
        /** Status, and what is left in each window. */
        async ask(of = gateway) {
          const { status, headers } = await send(`${of.url}/x`, { headers: { host: `${id}.localhost` } })
          const left = [...String(headers.ratelimit).matchAll(/"all\.(\w+)";r=(\d+)/g)]
          return { status, ...Object.fromEntries(left.map(([, name, r]) => [name, Number(r)])) }
        },
        gateways,
        async edit(file: string, text: string) {
          writeFileSync(join(gateway.folder, file), text)
          await gateway.reloader.reload('SIGHUP')
        },
        id,
      }
    }
    const spend = async (ask: () => Promise<unknown>, times: number) => {
      for (let i = 0; i < times; i += 1) await ask()
    }

    t.test('a burst that is added takes nothing from the others and gives them nothing', async t => {
      const { ask, edit } = await start(t, `{ windows: [${HOUR}, ${MONTH}] }`)
      await spend(ask, 41)
      t.same(await ask(), { status: 200, hour: 8, month: 18 })
      await edit('policies/limits.yaml', limits(`{ burst: 100, windows: [${HOUR}, ${MONTH}] }`))
      t.same(await ask(), { status: 200, burst: 99, hour: 7, month: 17 })
    })

    t.test('an override of one window, added and removed, leaves the others as they are', async t => {
      const { ask, edit, id } = await start(t, `{ windows: [${HOUR}, ${MONTH}] }`)
      await spend(ask, 20)
      await edit('projects.yaml', projects(id, ', overrides: { all: { burst: 300 } }'))
      t.same(await ask(), { status: 200, burst: 299, hour: 29, month: 39 })
      await edit('projects.yaml', projects(id))
      t.same(await ask(), { status: 200, hour: 28, month: 38 })
    })

    t.test(
      'a customer who moves to another plan keeps what was spent in windows of the same name',
      async t => {
        const { ask, edit, id } = await start(t, `{ windows: [${HOUR}, ${MONTH}] }`)
        await spend(ask, 20)
        await edit('projects.yaml', projects(id, '', 'enterprise'))
        t.same(await ask(), { status: 200, burst: 29, month: 39 })
        await edit('projects.yaml', projects(id))
        t.same(await ask(), { status: 200, hour: 29, month: 38 }, 'and finds the windows again that it had')
      },
    )

    t.test('the order of windows means nothing', async t => {
      const { ask, edit } = await start(t, `{ windows: [${HOUR}, ${MONTH}] }`)
      await spend(ask, 10)
      await edit('policies/limits.yaml', limits(`{ windows: [${MONTH}, ${HOUR}] }`))
      t.same(await ask(), { status: 200, month: 49, hour: 39 })
    })

    t.test('nobody is locked out by a shorter window that takes the place of a full one', async t => {
      const { ask, edit } = await start(t, '{ windows: [{ name: ten, requests: 5, per: 1h }] }')
      await spend(ask, 5)
      t.match(await ask(), { status: 429 })
      await edit('policies/limits.yaml', limits('{ windows: [{ name: other, requests: 5, per: 1h }] }'))
      t.same(await ask(), { status: 200, other: 4 })
      await edit('policies/limits.yaml', limits('{ windows: [{ name: ten, requests: 5, per: 1h }] }'))
      t.match(await ask(), { status: 429 }, 'the full window is full when it comes back')
    })

    t.test('the log line of a reload says what becomes of the counters', async t => {
      const { edit, gateways, id } = await start(t, `{ sustained: 9, windows: [${HOUR}, ${MONTH}] }`)
      const said = () =>
        gateways[0]?.lines.filter(({ msg }) => msg === 'Configuration reloaded').at(-1)?.counters
      await edit(
        'policies/limits.yaml',
        limits(`{ burst: 100, sustained: 8, windows: [{ name: hour, requests: 50, per: 2h }] }`),
      )
      t.same(said(), [
        'all: New counters: burst',
        'all: Counters that end: month',
        'all: Counts that go on under another length or algorithm: hour',
      ])
      await edit(
        'projects.yaml',
        projects(id, ', overrides: { all: { windows: [{ name: day, requests: 9, per: day }] } }'),
      )
      t.same(said(), [`${id}: all: New counters: day`])
      await edit(
        'projects.yaml',
        projects(id, ', overrides: { all: { windows: [{ name: day, requests: 8, per: day }] } }'),
      )
      t.equal(said(), undefined, 'other numbers move nothing')
    })

    if (settings !== '') {
      t.test('old and new gateways of a rolling deployment agree', async t => {
        const { ask, gateways } = await start(
          t,
          `{ windows: [${HOUR}, ${MONTH}] }`,
          `{ burst: 100, windows: [${HOUR}, ${MONTH}] }`,
        )
        await spend(ask, 10)
        t.match(await ask(gateways[1]), { status: 200, hour: 39, month: 49 })
        t.same(await ask(gateways[0]), { status: 200, hour: 38, month: 48 })
        t.match(await ask(gateways[1]), { status: 200, hour: 37, month: 47 })
      })
    }
  })
}
