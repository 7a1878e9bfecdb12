import { join } from 'node:path'
import Database from 'libsql'
import t from 'tap'
import type { Resource } from '../../../../services/directory/model.js'
import { createGroup } from '../../../../services/directory/store/sqlite/group-commit.js'
import { openSqlite } from '../../../../services/directory/store/sqlite/store.js'
import { storeContract } from './store-contract.js'
import { newDirectory, newResource, save, write } from './store-fixtures.js'

const idle = { flush: async () => undefined, flushNow: () => undefined }

t.test('SQLite', async t => {
  const folder = t.testdir()
  const store = openSqlite(join(folder, 'directory.db'))
  t.teardown(() => store.close())
  storeContract(t, store)

  t.test('another process sees committed changes', async t => {
    const directory = newDirectory()
    await store.createDirectory(directory)
    await write(store, directory, [save(newResource(directory, 'user', 'kept'))], 1)
    const other = openSqlite(join(folder, 'directory.db'))
    t.teardown(() => other.close())
    t.equal(await other.count(directory.id, 'user'), 1)
    t.same(await other.head(directory.id), { version: 1, sequence: 1 })
  })

  t.test('a file of a newer release is refused with a message that says what to do', async t => {
    const file = join(t.testdir(), 'directory.db')
    await openSqlite(file).close()
    const raw = new Database(file)
    t.teardown(() => raw.close())
    raw.exec('PRAGMA user_version = 7')
    t.throws(() => openSqlite(file), {
      message:
        /was made by a newer release \(its tables have version 7, this release knows 4\)\. Start that release, or put back/,
    })
    t.match(raw.prepare('PRAGMA user_version').get(), { user_version: 7 }, 'and left as it is')
  })

  t.test('a file with unknown tables is refused with a message that says what to do', async t => {
    const file = join(t.testdir(), 'directory.db')
    const older = new Database(file)
    older.exec('CREATE TABLE resources (id TEXT PRIMARY KEY)')
    older.close()
    t.throws(() => openSqlite(file), { message: /version 0, not 4\)\. Move it away to start afresh\.$/ })
  })

  t.test('changes of the same turn share a flush, and are confirmed only after it', async t => {
    const statements: string[] = []
    const group = createGroup(text => statements.push(text.split(' ')[0] ?? ''), {
      flush: async () => void statements.push('flush'),
      flushNow: () => void statements.push('flush now'),
    })
    const told: string[] = []
    const change = (name: string) => {
      const { durable } = group.join(() => name)
      return durable.then(() => told.push(name))
    }
    const changes = ['a', 'b', 'c'].map(change)
    t.throws(
      () => group.join(() => JSON.parse('{')),
      { name: 'SyntaxError' },
      'a change that fails throws its own error',
    )
    await Promise.resolve()
    t.same(told, [])
    await Promise.all(changes)
    t.same(told, ['a', 'b', 'c'])
    const made = ['SAVEPOINT', 'RELEASE']
    t.same(statements, ['BEGIN', ...made, ...made, 'SAVEPOINT', 'ROLLBACK', 'COMMIT', 'flush'])
    group.flush()
    t.equal(statements.at(-1), 'flush', 'a flush with nothing to flush does nothing')
    const later = group.join(() => undefined).durable
    group.alone(() => statements.push('alone'))
    await later
    t.same(statements.slice(9), ['BEGIN', 'COMMIT', 'flush now', 'alone', 'flush now'])
  })

  t.test('a failing first change has no effect, and later changes of the same turn succeed', async t => {
    const directory = newDirectory()
    await store.createDirectory(directory)
    const [first, second] = ['first', 'second'].map(name => newResource(directory, 'user', name))
    const [broken, good] = [{ ...first, label: null }, second].map(user =>
      write(store, directory, [save(user as Resource)], 1),
    )
    await t.rejects(broken as Promise<unknown>, /NOT NULL/)
    await good
    t.equal(await store.count(directory.id, 'user'), 1)
    t.same(await store.head(directory.id), { version: 1, sequence: 1 })
  })

  t.test('a failing commit undoes all changes of its group, and the next group succeeds', async t => {
    const statements: string[] = []
    let full = true
    const group = createGroup(text => {
      statements.push(text)
      if (full && text === 'COMMIT') throw new Error('the disk is full')
    }, idle)
    const changes = [1, 2].map(() => group.join(() => undefined).durable)
    t.same(
      (await Promise.allSettled(changes)).map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    t.equal(statements.at(-1), 'ROLLBACK')
    full = false
    await group.join(() => undefined).durable
    t.equal(statements.at(-1), 'COMMIT')
  })

  t.test('after a failed flush nothing is confirmed, and further changes are refused', async t => {
    const fail = () => {
      throw new Error('the disk is broken')
    }
    const group = createGroup(() => undefined, { flush: async () => fail(), flushNow: fail })
    await t.rejects(group.join(() => undefined).durable, { message: 'the disk is broken' })
    await group.settled()
    t.throws(() => group.flush(), { message: 'the disk is broken' })
    t.throws(() => group.join(() => undefined), { message: 'the disk is broken' })
    t.throws(() => group.alone(() => undefined), { message: 'the disk is broken' })
  })

  t.test('changes committed during a flush share the next one', async t => {
    const flushes: Array<() => void> = []
    const flush = () => new Promise<void>(resolve => flushes.push(resolve))
    const group = createGroup(() => undefined, { flush, flushNow: () => undefined })
    const turn = () => new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    const kept: string[] = []
    for (const name of ['a', 'b', 'c']) {
      group.join(() => undefined).durable.then(() => kept.push(name))
      await turn()
    }
    t.equal(flushes.length, 1)
    flushes[0]?.()
    await turn()
    t.same([kept, flushes.length], [['a'], 2])
    flushes[1]?.()
    await group.settled()
    t.same([kept, flushes.length], [['a', 'b', 'c'], 2])
  })

  t.test('a synchronous flush during another one does not wait for it', async t => {
    let now = 0
    let done = (): void => undefined
    const disk = { flush: () => new Promise<void>(resolve => (done = resolve)), flushNow: () => void now++ }
    const group = createGroup(() => undefined, disk)
    const { durable } = group.join(() => undefined)
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    group.flush()
    t.equal(now, 1)
    done()
    await durable
    await group.settled()
    group.flush()
    t.equal(now, 1, 'flushed changes are not flushed again')
  })

  t.test(
    'when a failing change has ended the transaction, the changes before it fail too, and the next succeeds',
    async t => {
      let broken = false
      const group = createGroup(text => {
        if (broken && text.startsWith('ROLLBACK')) throw new Error('no transaction is active')
      }, idle)
      const before = group.join(() => undefined).durable
      broken = true
      t.throws(
        () =>
          group.join(() => {
            throw new Error('the disk is full')
          }),
        { message: 'the disk is full' },
      )
      await t.rejects(before, { message: 'the disk is full' })
      broken = false
      await group.join(() => undefined).durable
    },
  )
})
