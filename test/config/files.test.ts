/** The files of one load: what was read, and what is watched. */
import { execFileSync, spawn } from 'node:child_process'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ConfigFiles } from '../../config/files.js'
import { hasChanged } from '../../config/marks.js'

t.test('a file is read once, and a change after that is seen, however often it is used', t => {
  const folder = t.testdir({ text: 'old', secret: 'old' })
  const files = new ConfigFiles()
  const read = () => [files.text(join(folder, 'text')), files.secret(join(folder, 'secret'))]
  const before = read()
  t.notOk(hasChanged(files.sources))
  for (const name of ['text', 'secret']) {
    writeFileSync(join(folder, 'new'), 'changed')
    renameSync(join(folder, 'new'), join(folder, name))
  }
  t.same(read(), before)
  t.ok(hasChanged(files.sources))
  t.same(
    [...files.sources].filter(([path, mark]) => !hasChanged(new Map([[path, mark]]))),
    [],
    'of both',
  )
  t.end()
})

t.test('what another process has read is not looked for on this disk', t => {
  const files = new ConfigFiles({
    texts: [['/nowhere/a', { text: 'a' }]],
    secrets: [['/nowhere/b', { text: 'b' }]],
    folders: [],
  })
  t.same([files.text('/nowhere/a'), files.secret('/nowhere/b')], [{ text: 'a' }, { text: 'b' }])
  t.same([...files.sources], [])
  t.end()
})

t.test(
  'a pipe is read once, whoever asks again, and is not watched',
  { skip: process.platform === 'win32' },
  t => {
    const pipe = join(t.testdir(), 'pipe')
    execFileSync('mkfifo', [pipe])
    const writer = spawn('sh', ['-c', `echo hunter2 > ${pipe}`])
    t.teardown(() => writer.kill())
    t.same(new ConfigFiles().secret(pipe), { text: 'hunter2' })
    const again = new ConfigFiles()
    t.same(again.secret(pipe), { text: 'hunter2' }, 'without a writer')
    t.same([...again.sources], [])
    rmSync(pipe)
    t.same(again.secret(pipe), { text: 'hunter2' }, 'when it is gone')
    writeFileSync(pipe, 'hunter3')
    t.same(new ConfigFiles().secret(pipe), { text: 'hunter3' }, 'a file in its place is read')
    t.end()
  },
)

t.test('a pipe into which nobody writes does not hold up a running gateway for long', t => {
  const pipe = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [pipe])
  const before = Date.now()
  t.match(new ConfigFiles(undefined, true).secret(pipe), { fault: /is a pipe into which nobody writes/ })
  t.ok(Date.now() - before < 3_000)
  const slow = spawn('sh', ['-c', `exec 3> ${pipe}; sleep 0.3; printf hun >&3; sleep 0.3; echo ter2 >&3`])
  t.teardown(() => slow.kill())
  t.same(new ConfigFiles().secret(pipe), { text: 'hunter2' })
  t.end()
})
