import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import t, { type Test } from 'tap'
import { idMaker } from '../../../services/identity/ids.js'
import {
  type Identifiers,
  IdentifierTaken,
  type IdentityStore,
  type StoredIdentity,
  StoreUnavailable,
} from '../../../services/identity/store/contract.js'
import { openMongoStore } from '../../../services/identity/store/mongodb.js'
import { openSqliteStore } from '../../../services/identity/store/sqlite.js'
import { mongoUrl } from '../../helpers/mongo.js'

/** The error for an identifier that another identity has. */
const taken = (trait: string) => Object.assign(new IdentifierTaken(trait), {})

type Open = (identifiers?: Identifiers) => Promise<IdentityStore>

const newId = idMaker(Date.now)

/** These traits are unique by their plain value. */
function uniqueBy(...traits: string[]): Identifiers {
  return {
    traits,
    revision: traits.join(),
    keysOf: (project, json) => keys(project, JSON.parse(json), traits),
  }
}

function keys(
  project: string,
  values: Record<string, string>,
  traits: readonly string[],
): Map<string, string> {
  const held = traits.filter(trait => values[trait] !== undefined)
  return new Map(held.map(trait => [trait, `${project} ${trait} ${values[trait]}`]))
}

function identity(traits: Record<string, string>, over: Partial<StoredIdentity> = {}): StoredIdentity {
  const now = '2026-01-02T03:04:05.678Z'
  const base = {
    id: newId(),
    project: 'acme',
    schemaId: 'person',
    createdAt: now,
    updatedAt: now,
    version: 1,
  }
  return { ...base, traits: JSON.stringify(traits), ...over }
}

const held = (stored: StoredIdentity, ...traits: string[]) =>
  keys(stored.project, JSON.parse(stored.traits), traits.length > 0 ? traits : ['email'])

function contract(open: Open): (t: Test) => Promise<void> {
  return async t => {
    const store = await open()
    t.teardown(() => store.close())

    await t.test('a stored identity is found and removed in its own project only', async t => {
      const one = identity({ 'a.b': '$x', quote: '"\u0000ü😀' }, { project: 'here' })
      await store.create(one, new Map())
      t.same(await store.find('here', one.id), one)
      t.equal(await store.find('there', one.id), undefined)
      t.equal(await store.find('here', newId()), undefined)
      t.equal(await store.remove('there', one.id), false)
      t.equal(await store.remove('here', one.id), true)
      t.equal(await store.remove('here', one.id), false)
      t.equal(await store.find('here', one.id), undefined)
    })

    await t.test('pages follow the order of creation, without gaps or repetitions during writes', async t => {
      const made: string[] = []
      for (let count = 0; count < 25; count++) {
        const one = identity({}, { project: 'pages' })
        await store.create(one, new Map())
        await store.create(identity({}, { project: 'elsewhere' }), new Map())
        made.push(one.id)
      }
      const seen: string[] = []
      let after: string | undefined
      for (;;) {
        const page = await store.list('pages', after, 7)
        seen.push(...page.map(({ id }) => id))
        after = page.at(-1)?.id
        if (page.length < 7) break
        if (seen.length === 7) await store.remove('pages', made[0] as string)
      }
      t.same(seen, made)
      t.same(await store.list('nobody', undefined, 7), [])
    })

    await t.test('of several identities with one identifier only one is stored per project', async t => {
      const twins = Array.from({ length: 8 }, () => identity({ email: 'a@x' }))
      const results = await Promise.allSettled(twins.map(twin => store.create(twin, held(twin))))
      t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
      for (const result of results) {
        if (result.status === 'rejected')
          t.match(result.reason, { constructor: IdentifierTaken, trait: 'email' })
      }
      t.equal((await store.list('acme', undefined, 10)).length, 1, 'the refused identities are not stored')
      const other = identity({ email: 'a@x' }, { project: 'other' })
      await t.resolves(store.create(other, held(other)))
      const none = [identity({}), identity({})]
      for (const one of none)
        await t.resolves(store.create(one, held(one)), 'identities without an identifier do not conflict')
    })

    await t.test('a freed identifier can be taken again', async t => {
      const first = identity({ email: 'free@x' })
      const second = identity({ email: 'free@x' })
      await store.create(first, held(first))
      const moved = { ...first, traits: '{"email":"moved@x"}', version: 2 }
      t.equal(await store.replace(moved, held(moved)), true)
      await t.resolves(store.create(second, held(second)))
      const clash = { ...moved, traits: '{"email":"free@x"}', version: 3 }
      await t.rejects(store.replace(clash, held(clash)), taken('email'))
      t.same(await store.find('acme', first.id), moved, 'a refused write changes nothing')
      t.equal(await store.remove('acme', second.id), true)
      t.equal(await store.replace(clash, held(clash)), true)
    })

    await t.test('a write based on an old version changes nothing', async t => {
      const one = identity({ n: '0' })
      await store.create(one, new Map())
      const writers = Array.from({ length: 6 }, (_, n) => ({ ...one, traits: `{"n":"${n}"}`, version: 2 }))
      const won = await Promise.all(writers.map(next => store.replace(next, new Map())))
      t.equal(won.filter(Boolean).length, 1)
      t.same(await store.find('acme', one.id), writers[won.indexOf(true)])
      t.equal(await store.replace({ ...one, id: newId(), version: 2 }, new Map()), false)
      t.equal(await store.replace({ ...one, project: 'other', version: 3 }, new Map()), false)
      t.equal(await store.remove('acme', one.id, 1), false, 'a stale removal does nothing')
      t.equal(await store.remove('acme', one.id, 2), true)
    })
  }
}

/** What happens when the store is opened with another schema. */
function reopening(open: Open): (t: Test) => Promise<void> {
  return async t => {
    const before = await open(uniqueBy('email'))
    const ann = identity({ email: 'ann@x', phone: '1' })
    await before.create(ann, held(ann))
    const ben = identity({ email: 'ben@x', phone: '1' })
    await before.create(ben, held(ben))
    await before.close()
    await t.rejects(
      open(uniqueBy('phone')),
      taken('phone'),
      'identities that share a new identifier prevent the start',
    )

    const fixing = await open(uniqueBy('email'))
    t.equal(
      await fixing.replace({ ...ben, traits: '{"email":"ben@x","phone":"2"}', version: 2 }, held(ben)),
      true,
    )
    await fixing.close()
    const after = await open(uniqueBy('phone'))
    t.teardown(() => after.close())
    const again = identity({ email: 'ann@x', phone: '2' })
    await t.rejects(after.create(again, held(again, 'phone')), taken('phone'), 'the phone is already taken')
    const free = identity({ email: 'ann@x', phone: '3' })
    await t.resolves(
      after.create(free, held(free, 'phone')),
      'a trait that is no longer an identifier may repeat',
    )
  }
}

t.test('SQLite', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-identity-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const at =
    (name: string): Open =>
    identifiers =>
      openSqliteStore(join(folder, 'made', name), identifiers ?? uniqueBy('email'))
  await t.test('fulfils the contract of a store', contract(at('one.sqlite')))
  await t.test('follows the schema when it is opened again', reopening(at('two.sqlite')))
  t.equal(statSync(join(folder, 'made', 'one.sqlite')).mode & 0o077, 0, 'only its owner can read the file')
})

t.test('MongoDB', async t => {
  const url = await mongoUrl(t)
  if (url === undefined) return
  const second = await mongoUrl(t)
  await t.test(
    'fulfils the contract of a store',
    contract(identifiers => openMongoStore(url, identifiers ?? uniqueBy('email'))),
  )
  await t.test(
    'follows the schema when it is opened again',
    reopening(identifiers => openMongoStore(second ?? url, identifiers ?? uniqueBy('email'))),
  )
})

t.test('an unreachable MongoDB is reported without its address or password', async t => {
  const away = 'mongodb://user:secret@127.0.0.1:1/x?serverSelectionTimeoutMS=100'
  const error = await openMongoStore(away, uniqueBy('email')).catch((reason: Error) => reason)
  t.match(error, { constructor: StoreUnavailable })
  t.notMatch((error as Error).message, /secret|127/)
})

t.test('a SQLite file of a newer release is refused with a message and left unchanged', async t => {
  const file = join(t.testdir(), 'identity.sqlite')
  await (await openSqliteStore(file, uniqueBy('email'))).close()
  const raw = new Database(file)
  t.teardown(() => raw.close())
  raw.exec('PRAGMA user_version = 9')
  await t.rejects(openSqliteStore(file, uniqueBy('email')), {
    message: /was made by a newer release \(its tables have version 9, this release knows 1\)/,
  })
  t.match(raw.prepare('PRAGMA user_version').get(), { user_version: 9 })
})

t.test('the log of SQLite stays below 1.2 MiB during many writes', async t => {
  const file = join(t.testdir(), 'identity.db')
  const store = await openSqliteStore(file, uniqueBy('email'))
  t.teardown(() => store.close())
  for (let i = 0; i < 300; i += 1) {
    const one = identity({ email: `u${i}@example.com`, bio: 'x'.repeat(3000) })
    await store.create(one, held(one))
  }
  t.ok(statSync(`${file}-wal`).size < 1.2 * 1024 * 1024)
})
