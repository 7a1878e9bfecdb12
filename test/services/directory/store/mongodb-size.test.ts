/**
 * What a request asks of MongoDB does not grow with the directory: neither the number of commands nor that of documents
 * in their replies. The store's own test checks that an index serves each command. Timing would show nothing, because
 * the server of the tests scans collections.
 */
import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { okta, patchOp, startService } from '../harness.js'

/** The collections that grow with a directory; the courier reads others at any time. */
const sized = ['directory_resources', 'directory_memberships', 'directory_journals']

/** Counts the commands of clients that connect during the test, and the documents in their replies. */
function countTraffic(t: Test) {
  const traffic = { commands: 0, documents: 0 }
  const connect = MongoClient.prototype.connect
  t.teardown(() => {
    MongoClient.prototype.connect = connect
  })
  MongoClient.prototype.connect = function (this: MongoClient) {
    const counted = new Set<number>()
    this.on('commandStarted', ({ requestId, commandName, command }) => {
      if (sized.includes(command[commandName])) counted.add(requestId)
    })
    this.on('commandSucceeded', ({ requestId, reply }) => {
      if (!counted.delete(requestId)) return
      const { firstBatch = [], nextBatch = [] } =
        (reply as { cursor?: Record<string, object[]> }).cursor ?? {}
      traffic.commands++
      traffic.documents += firstBatch.length + nextBatch.length
    })
    return connect.call(this)
  }
  return traffic
}

t.test(
  'a request needs as many MongoDB commands and documents in a large directory as in a small one',
  async t => {
    const url = await mongoUrl(t)
    if (url === undefined) return
    const traffic = countTraffic(t)
    const service = await startService(t, {
      MONGODB_URL: `${url}${url.includes('?') ? '&' : '?'}monitorCommands=true`,
    })

    /** Traffic of each kind of request in a directory of `count` users, all but the last in one group. */
    async function costs(count: number) {
      const { id, scim } = await service.directory()
      const Operations = Array.from({ length: count }, (_, n) => ({
        ...{ method: 'POST', path: '/Users', bulkId: `b${n}`, data: okta(`user${n}@acme.example`) },
      }))
      const made = await scim('POST', '/Bulk', { Operations })
      const ids = made.body.Operations.map(({ location }: { location: string }) => location.split('/').at(-1))
      const members = ids.slice(0, -1).map((value: string) => ({ value }))
      const group = (
        await scim('POST', '/Groups?excludedAttributes=members', { displayName: 'All', members })
      ).body.id
      const { body: first } = await service.manage('GET', `/users?directoryId=${id}&pageLimit=5`)
      const last = { value: ids.at(-1) }
      const kinds = {
        create: () => scim('POST', '/Users', okta('new@acme.example')),
        find: () => scim('GET', `/Users?filter=${encodeURIComponent('userName eq "user7@acme.example"')}`),
        change: () =>
          scim('PATCH', `/Users/${ids[3]}`, patchOp({ op: 'replace', path: 'title', value: 'Dr.' })),
        'list by token': () =>
          service.manage('GET', `/users?directoryId=${id}&pageLimit=5&pageToken=${first.pageToken}`),
        'find by e-mail': () => service.manage('GET', `/users?directoryId=${id}&email=user7@acme.example`),
        'a page of members': () =>
          service.manage('GET', `/groups/${group}/members?directoryId=${id}&pageLimit=5`),
        'a group without members': () => scim('GET', `/Groups/${group}?excludedAttributes=members`),
        'add a member': () =>
          scim(
            'PATCH',
            `/Groups/${group}?excludedAttributes=members`,
            patchOp({ op: 'add', path: 'members', value: [last] }),
          ),
        'remove a member': () =>
          scim(
            'PATCH',
            `/Groups/${group}?excludedAttributes=members`,
            patchOp({ op: 'remove', path: `members[value eq "${last.value}"]` }),
          ),
      }
      const told: Record<string, object> = {}
      for (const [name, ask] of Object.entries(kinds)) {
        const before = { ...traffic }
        t.match(await ask(), { status: /^20[014]$/ }, name)
        told[name] = {
          commands: traffic.commands - before.commands,
          documents: traffic.documents - before.documents,
        }
      }
      return told
    }

    const small = await costs(20)
    t.same(await costs(200), small)
    t.ok(Object.values(small).every(each => (each as { commands: number }).commands < 20))
  },
)
