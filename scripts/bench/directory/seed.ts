/** Fills a directory directly in its database, bypassing HTTP and the service: filling it is not measured. */
import { join } from 'node:path'
import Database from 'libsql'
import { MongoClient } from 'mongodb'
import type { Directory, JsonObject, Resource } from '../../../services/directory/model.js'
import { termsOf } from '../../../services/directory/scim/filter-query.js'
import { newResource } from '../../../services/directory/sync/resources.js'

const chunk = 5000

/** The nth user as an identity provider sends it. */
export const user = (n: number | string) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName: `user-${n}@example.com`,
  externalId: `ext-${n}`,
  name: { givenName: 'Ada', familyName: `Lovelace ${n}` },
  emails: [{ primary: true, value: `user-${n}@example.com`, type: 'work' }],
  displayName: `Ada Lovelace ${n}`,
  active: true,
})

export interface Seeded {
  readonly groupId: string
  /** The ids of the users that are not in the group. */
  readonly outside: readonly string[]
  /** The last user. */
  readonly last: Resource
}

/** Inserts users, and one group with the first `members` of them, into the database in that folder or at that URL. */
export async function seed(
  { dataDir, mongodbUrl }: { readonly dataDir: string; readonly mongodbUrl?: string },
  { id, tenant, product }: Pick<Directory, 'id' | 'tenant' | 'product'>,
  { count, members }: { readonly count: number; readonly members: number },
): Promise<Seeded> {
  const make = (type: 'user' | 'group', raw: JsonObject, created: number) =>
    newResource({ id, tenant, product } as Directory, type, raw, new Date(created).toISOString())
  const database = mongodbUrl ? intoMongodb(mongodbUrl) : intoSqlite(dataDir)
  const base = Date.now() - count
  const ids: string[] = []
  let last: Resource | undefined
  for (let from = 0; from < count; from += chunk) {
    const length = Math.min(chunk, count - from)
    const users = Array.from({ length }, (_, n) => make('user', user(from + n), base + from + n))
    await database.resources(users)
    for (const { id } of users) ids.push(id)
    last = users.at(-1)
  }
  const raw = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'], displayName: 'Everybody' }
  const group = make('group', raw, Date.now())
  await database.resources([group])
  await database.memberships(group.id, ids.slice(0, members))
  await database.close()
  return { groupId: group.id, outside: ids.slice(members), last: last as Resource }
}

interface Seedling {
  resources(resources: readonly Resource[]): Promise<void>
  memberships(groupId: string, userIds: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** One transaction without a flush. Terms are inserted last and sorted, the fastest way to build an index. */
function intoSqlite(dataDir: string): Seedling {
  const db = new Database(join(dataDir, 'directory.db'))
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN')
  const names = 'id, directory_id, type, tenant, product, created, modified, label, raw, terms'
  const insert = db.prepare(`INSERT INTO resources (${names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const join_ = db.prepare('INSERT INTO memberships (group_id, user_id) VALUES (?, ?)')
  let directoryId = ''
  return {
    async resources(resources) {
      for (const resource of resources) {
        const { id, type, tenant, product, created, modified, label, raw } = resource
        directoryId = resource.directoryId
        const texts = [JSON.stringify(raw), JSON.stringify(termsOf(resource))]
        insert.run([id, directoryId, type, tenant, product, created, modified, label, ...texts])
      }
    },
    async memberships(groupId, userIds) {
      for (const userId of userIds) join_.run([groupId, userId])
    },
    async close() {
      db.prepare(
        `INSERT INTO terms SELECT r.directory_id, r.type, term.value, r.number
         FROM resources AS r, json_each(r.terms) AS term WHERE r.directory_id = ? ORDER BY 2, 3, 4`,
      ).run([directoryId])
      db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
    },
  }
}

function intoMongodb(url: string): Seedling {
  const client = new MongoClient(url)
  const collection = (name: string) => client.db().collection<{ _id: string }>(name)
  return {
    async resources(resources) {
      const documents = resources.map(resource => {
        const { id: _id, directoryId: directory, raw, ...fields } = resource
        return { _id, version: 0, directory, ...fields, terms: termsOf(resource), raw: JSON.stringify(raw) }
      })
      await collection('directory_resources').insertMany(documents)
    },
    async memberships(group, userIds) {
      const pairs = userIds.map(user => ({ _id: `${group}/${user}/0`, group, user, version: 0 }))
      for (let from = 0; from < pairs.length; from += chunk) {
        await collection('directory_memberships').insertMany(pairs.slice(from, from + chunk))
      }
    },
    close: () => client.close(),
  }
}
