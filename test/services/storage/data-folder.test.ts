/** What a data folder keeps, and with what it is refused. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { makeFolder, openFolder, storedKey } from '../../../services/storage/data-folder.js'

const module = new URL('../../../services/storage/data-folder.js', import.meta.url).href
const remedy = 'Restore it'

t.test('processes that start at once make one folder and one key', async t => {
  const folder = join(t.testdir(), 'new', 'data')
  const file = join(folder, 'kept.key')
  const script = `const { openFolder, storedKey } = await import(${JSON.stringify(module)})
    openFolder(${JSON.stringify(folder)})
    console.log(JSON.stringify(storedKey(${JSON.stringify(file)}, { remedy: 'x' })))`
  const keys = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = spawn(process.execPath, [...process.execArgv, '--input-type=module', '--eval', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [out] = await Promise.all([text(child.stdout), once(child, 'exit')])
      return JSON.parse(out) as { text: string; made: boolean }
    }),
  )
  t.equal(new Set(keys.map(key => key.text)).size, 1)
  t.equal(keys.filter(key => key.made).length, 1)
  t.same(readdirSync(folder), ['kept.key'])
  t.equal(readFileSync(file, 'utf8'), `${keys[0]?.text}\n`)
  t.same([statSync(folder).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600])
})

t.test('a key is read as it was written, with or without the end of its line', async t => {
  const file = join(t.testdir(), 'kept.key')
  const fresh = Buffer.alloc(32, 7)
  t.same(storedKey(file, { remedy, fresh }), { text: fresh.toString('base64'), made: true })
  writeFileSync(file, fresh.toString('base64'))
  t.same(storedKey(file, { remedy }), { text: fresh.toString('base64'), made: false })
})

t.test('what cannot be used is refused with a sentence', async t => {
  const folder = t.testdir({ file: '', 'empty.key': '' })
  for (const path of ['/proc/sluice', '/proc/sluice/data', '/dev/null/data', join(folder, 'file')]) {
    t.throws(() => openFolder(path), { message: `DATA_DIR ${path} cannot be used: ` }, path)
  }
  t.throws(() => makeFolder('/proc/sluice'), { code: 'ENOENT' })
  const damaged = /empty\.key is damaged: it must hold 32 bytes in base64\. Restore it$/
  t.throws(() => storedKey(join(folder, 'empty.key'), { remedy }), { message: damaged })
  const unwritable = /none\/kept\.key cannot be written: ENOENT/
  t.throws(() => storedKey(join(folder, 'none', 'kept.key'), { remedy }), { message: unwritable })
})
