/** Which queries a directory of any size accepts. */
import t from 'tap'
import type { Resource } from '../../../../services/directory/model.js'
import { namings } from '../../../../services/directory/scim/attributes.js'
import { readProjection } from '../../../../services/directory/scim/projection.js'
import { type ListParameters, readQuestion } from '../../../../services/directory/scim/question.js'
import type { Scan, Store } from '../../../../services/directory/store/contract.js'
import { createReader } from '../../../../services/directory/sync/read.js'
import { createSearchQueue } from '../../../../services/directory/sync/search-queue.js'
import { newDirectory, newResource } from '../store/store-fixtures.js'

/** The reader of a directory that reports `count` users; `scan` returns its pages, made from a hundred users. */
function readerOf(count: number, scan: (asked: Scan, users: Resource[]) => Resource[]) {
  const directory = newDirectory()
  const users = Array.from({ length: 100 }, (_, n) =>
    newResource(directory, 'user', `user${n}`, { title: 'Dr.', displayName: 'Ada' }),
  )
  const store = {
    count: async () => count,
    scan: async (asked: Scan) => scan(asked, users),
    resourcesById: async (_directory: string, _type: string, ids: string[]) =>
      users.filter(({ id }) => ids.includes(id)),
  }
  const reader = createReader(store as unknown as Store, namings.user, createSearchQueue())
  const wish = { projection: readProjection(undefined, undefined), base: '' }
  return (asked: ListParameters) => reader.list(directory, readQuestion(asked, 'user'), wish)
}

const refused = { status: 400, scimType: 'tooMany', message: /More than 200000 users .* by eq/ }

t.test('a filter or order that would scan a large directory is refused before the scan starts', async t => {
  let steps = 0
  const ask = readerOf(1_000_000, () => {
    steps++
    return []
  })
  for (const asked of [
    { filter: 'userName sw "a"' },
    { filter: 'title pr' },
    { filter: 'meta.lastModified gt "2026-01-01T00:00:00Z"' },
    { filter: 'userName ne "ada"' },
    { filter: 'userName eq "ada" or title pr' },
    { sortBy: 'userName' },
  ]) {
    await t.rejects(ask(asked), refused, JSON.stringify(asked))
  }
  t.equal(steps, 0)
})

t.test('a lookup by index works in a large directory, even with further conditions and an order', async t => {
  const ask = readerOf(1_000_000, ({ terms, after }, users) => (terms && !after ? users : []))
  t.match(await ask({ filter: 'displayName eq "Ada" and title pr', sortBy: 'userName' }), { total: 100 })
  t.match(await ask({ filter: 'userName eq "user1" and userName sw "u"' }), { total: 1 })
})

t.test('a lookup of a name that too many users share is refused at the same bound', async t => {
  let looked = 0
  const ask = readerOf(1_000_000, (_asked, users) => {
    looked += users.length
    return users
  })
  await t.rejects(ask({ filter: 'displayName eq "Ada"' }), refused)
  t.equal(looked, 200_100)
})

t.test('a directory within the bound is scanned', async t => {
  const ask = readerOf(200_000, ({ after }, users) => (after ? [] : users))
  t.match(await ask({ filter: 'title pr' }), { total: 100 })
  t.match(await ask({ sortBy: 'userName', sortOrder: 'descending', count: 1 }), {
    total: 100,
    resources: [{ userName: 'user99' }],
  })
})
