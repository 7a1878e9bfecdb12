import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { createCheckpoints } from '../../../../services/directory/store/sqlite/checkpoints.js'
import { openSqlite } from '../../../../services/directory/store/sqlite/store.js'
import { newDirectory, newResource, save, write } from './store-fixtures.js'

/** Checkpoints of a log with `pages` pages; `during` is what is written meanwhile, pass by pass. Records the passes. */
function watched(pages: number, during: readonly (number | Error)[]) {
  const done: string[] = []
  const left = [...during]
  const checkpoints = createCheckpoints({
    elsewhere: async () => {
      done.push('elsewhere')
      const next = left.shift() ?? 0
      if (typeof next !== 'number') throw next
      checkpoints.wrote(next)
      return pages
    },
    here: () => done.push('here'),
  })
  return { checkpoints, done }
}

t.test('the log is checkpointed on another thread after 1000 written rows', async t => {
  const { checkpoints, done } = watched(900, [])
  checkpoints.wrote(999)
  await setImmediate()
  t.same(done, [])
  checkpoints.wrote(1)
  await checkpoints.settled()
  t.same(done, ['elsewhere'])
  checkpoints.wrote(999)
  await checkpoints.settled()
  t.same(done, ['elsewhere'], 'rows that were checkpointed are not counted again')
})

t.test(
  'the serving thread checkpoints only after a pass during which fewer than 250 rows were written',
  async t => {
    for (const [pages, during, expected] of [
      [4001, [249], ['elsewhere', 'here']],
      [4001, [250, 0], ['elsewhere', 'elsewhere', 'here']],
      [4001, [50_000, 3000, 400, 249], ['elsewhere', 'elsewhere', 'elsewhere', 'elsewhere', 'here']],
      [4000, [0], ['elsewhere']],
    ] as const) {
      const { checkpoints, done } = watched(pages, during)
      checkpoints.wrote(1000)
      await checkpoints.settled()
      t.same(done, expected)
    }
  },
)

t.test('after a failed pass the next one does the work', async t => {
  const { checkpoints, done } = watched(4001, [new Error('SQLITE_IOERR')])
  checkpoints.wrote(1000)
  await checkpoints.settled()
  t.same(done, ['elsewhere'])
  checkpoints.wrote(1000)
  await checkpoints.settled()
  t.same(done, ['elsewhere', 'elsewhere', 'here'])
})

/** The log's first salt, which changes each time the log restarts (https://www.sqlite.org/walformat.html). */
function saltOf(log: string): number {
  const bytes = Buffer.alloc(20)
  const handle = openSync(log, 'r')
  readSync(handle, bytes)
  closeSync(handle)
  return bytes.readUInt32BE(16)
}

t.test('the log of a busy directory is restarted, and no write is lost', async t => {
  const file = join(t.testdir(), 'directory.db')
  const store = openSqlite(file)
  const directory = newDirectory()
  await store.createDirectory(directory)
  const salt = saltOf(`${file}-wal`)
  let users = 0
  while (saltOf(`${file}-wal`) === salt && users < 40_000) {
    const some = Array.from({ length: 20 }, (_, i) => newResource(directory, 'user', `u${users + i}`))
    await write(
      store,
      directory,
      some.map(user => save(user)),
      1,
    )
    users += some.length
  }
  t.ok(statSync(`${file}-wal`).size < 100 * 1024 * 1024, 'the log is restarted before it reaches 100 MiB')
  await store.close()
  const next = openSqlite(file)
  t.teardown(() => next.close())
  t.equal(await next.count(directory.id, 'user'), users)
})
