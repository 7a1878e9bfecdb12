/** How the live view learns of operators' overrides, in this process and in others on the same Redis. */

import t, { type Test } from 'tap'
import { networkText } from '../../../config/words/address.js'
import type { LiveOverride } from '../../../gateway/admin/live-snapshot.js'
import { type OpenOverrides, openOverrides } from '../../../gateway/overrides/open.js'
import { changesFor, newOverride } from '../../../gateway/overrides/override.js'
import { redisUrl } from '../../helpers/redis.js'
import { stores } from '../../helpers/stores.js'
import { waitUntil } from '../../helpers/wait.js'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

async function open(t: Test, redis: string): Promise<OpenOverrides> {
  const opened = await openOverrides(redis, silent)
  t.teardown(() => opened.store.close())
  return opened
}

const override = ({ store }: OpenOverrides, what: string) =>
  store.change(contents => ({
    changes: changesFor(newOverride('reset', what, { from: '127.0.0.1' }), contents),
    result: undefined,
  }))

function watched({ runtime }: OpenOverrides): { heard: string[]; end: () => void } {
  const heard: string[] = []
  return { heard, end: runtime.overrides.watch(({ what }: LiveOverride) => heard.push(what)) }
}

for (const store of stores) {
  t.test(`a watcher gets each override once, ${store.name}`, async t => {
    const settings = await store.settings(t)
    if (settings === undefined) return
    const [, redis = ''] = /redis: (\S+)/.exec(settings) ?? []
    const opened = await open(t, redis)
    await override(opened, 'before')
    const { heard, end } = watched(opened)
    await override(opened, 'one')
    await override(opened, 'two')
    await opened.store.refresh()
    t.same(heard, ['one', 'two'])
    end()
    await override(opened, 'after')
    t.same(heard, ['one', 'two'])
    t.same(
      opened.runtime.overrides.list().map(({ what }) => what),
      ['after', 'two', 'one', 'before'],
    )
  })
}

t.test('overrides on other gateways reach a watcher once each, even simultaneous ones', async t => {
  const url = await redisUrl(t)
  if (url === undefined) return
  const all = await Promise.all([1, 2, 3].map(() => open(t, url)))
  const [one, other, third] = all as [OpenOverrides, OpenOverrides, OpenOverrides]
  const { heard } = watched(one)
  await override(other, 'elsewhere')
  await waitUntil('the override to be seen', () => heard.length === 1, 3000)
  const many = Array.from({ length: 30 }, (_, i) => `override ${i}`)
  await Promise.all(many.map((what, i) => override(i % 2 ? other : third, what)))
  await waitUntil('all overrides to be seen', () => heard.length === 31, 3000)
  t.same([...new Set(heard)].sort(), ['elsewhere', ...many].sort(), 'no override is lost or reported twice')
})

t.test('the newest 200 overrides are kept', async t => {
  const opened = await open(t, '')
  for (let i = 0; i < 250; i += 1) await override(opened, `override ${i}`)
  const told = opened.runtime.overrides.list()
  t.equal(told.length, 200)
  t.match([told[0], told.at(-1)], [{ what: 'override 249' }, { what: 'override 50' }])
})

for (const store of stores) {
  t.test(
    `of overrides in one millisecond the last one counts, and only it can be undone, ${store.name}`,
    async t => {
      const settings = await store.settings(t)
      if (settings === undefined) return
      const [, redis = ''] = /redis: (\S+)/.exec(settings) ?? []
      const one = await open(t, redis)
      const other = redis === '' ? one : await open(t, redis)
      const at = new Date().toISOString()
      for (let i = 0; i < 20; i += 1) {
        const denied = {
          ...newOverride('access', `override ${i}`, { from: '127.0.0.1', set: 'scraper' }),
          at,
        }
        const entry = {
          id: 'scraper',
          networks: [`203.0.113.${i}`],
          action: 'deny',
          mode: 'enforce',
        } as const
        const value = { ...entry, why: 'It scrapes.', by: denied.by, at, override: denied.id }
        await (i % 2 === 0 ? one : other).store.change(contents => ({
          changes: [{ collection: 'access', id: 'scraper', value }, ...changesFor(denied, contents)],
          result: undefined,
        }))
      }
      for (const { runtime, store } of [one, other]) {
        await store.refresh()
        const told = runtime.overrides.list()
        t.same(
          told.map(({ what }) => what),
          Array.from({ length: 20 }, (_, i) => `override ${19 - i}`),
        )
        t.same(
          told.filter(({ undo }) => undo).map(({ what }) => what),
          ['override 19'],
        )
        t.same(
          runtime.table.entries.flatMap(({ networks }) => networks.map(networkText)),
          ['203.0.113.19'],
        )
        t.equal(runtime.table.entries.length, 1)
      }
    },
  )
}

t.test('an override that can still be undone stays listed, however many follow', async t => {
  const opened = await open(t, '')
  const entry = { id: 'scraper', networks: ['203.0.113.7'], action: 'deny', mode: 'enforce' } as const
  const denied = newOverride('access', 'Denied', { from: '127.0.0.1', set: 'scraper' })
  await opened.store.change(contents => ({
    changes: [
      {
        collection: 'access',
        id: 'scraper',
        value: { ...entry, why: 'It scrapes.', by: denied.by, at: denied.at, override: denied.id },
      },
      ...changesFor(denied, contents),
    ],
    result: undefined,
  }))
  for (let i = 0; i < 250; i += 1) await override(opened, `override ${i}`)
  const told = opened.runtime.overrides.list()
  t.equal(told.length, 200)
  t.match(told.at(-1), { what: 'Denied', undo_call: 'DELETE /access/scraper' })
  await opened.store.change(contents => ({
    changes: [
      { collection: 'access', id: 'scraper' },
      ...changesFor(newOverride('access', 'Removed', { from: '127.0.0.1' }), contents),
    ],
    result: undefined,
  }))
  await override(opened, 'one more')
  t.notOk(
    opened.runtime.overrides.list().some(({ what }) => what === 'Denied'),
    'an override that was undone is dropped like any other',
  )
})
