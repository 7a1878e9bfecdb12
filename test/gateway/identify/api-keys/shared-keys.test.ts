/** What the processes of a gateway tell each other of a file of API keys. */
import { createHash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newKey } from '../../../../gateway/identify/api-keys/key-file.js'
import {
  keysInForce,
  learnKeys,
  shareKeys,
  useKeys,
  wantsKeys,
} from '../../../../gateway/identify/api-keys/shared-keys.js'
import { sharedClock } from '../../../../gateway/identify/newest.js'
import { waitUntil } from '../../../helpers/wait.js'

const LOG = { debug() {}, info() {}, warn() {}, error() {} }
const fileOf = (...names: string[]) =>
  JSON.stringify({
    version: 1,
    keys: names.map(name => newKey({ project: 'acme', name, scopes: [] }, new Date()).entry),
  })
const readOf = (id: string, text: string) => ({
  id,
  text,
  digest: createHash('sha256').update(text).digest('base64'),
  begun: sharedClock(),
})

t.test('the text is wanted only by a process that cannot read the same', async t => {
  const file = join(t.testdir(), 'keys.json')
  const [one, two] = [fileOf('ci'), fileOf('ci', 'web')]
  writeFileSync(file, one)
  const told: string[] = []
  shareKeys(({ text }) => told.push(text))
  const keys = useKeys(file, LOG)
  t.teardown(() => keys.release())
  writeFileSync(file, two)
  t.equal(await wantsKeys(readOf(file, two)), false, 'it reads the file as soon as it hears of it')
  t.match(keys.value.keys, { length: 2 })
  t.same(told, [one, two])

  const three = readOf(file, fileOf('ci', 'web', 'cron'))
  writeFileSync(file, '{bro')
  t.equal(await wantsKeys(three), true)
  t.ok(learnKeys(three))
  await waitUntil('it is in force', () => keys.value.keys.length === 3)
  t.equal(await wantsKeys(three), false)
  t.equal(await wantsKeys({ ...readOf(file, one), begun: 1 }), false, 'older')
  t.same(told, [one, two], 'what was learned is not passed on as if it had been read here')
})

t.test('a process that begins gets keys with the time at which those were read', async t => {
  const file = join(t.testdir(), 'keys.json')
  writeFileSync(file, fileOf('ci'))
  const keys = useKeys(file, LOG)
  t.teardown(() => keys.release())
  rmSync(file)
  const [before] = keysInForce()
  const next = readOf(file, fileOf('ci', 'web'))
  learnKeys(next)
  t.same(keysInForce(), [before], 'as long as the next ones are not in force')
  await waitUntil('they are', () => keys.value.keys.length === 2)
  t.match(keysInForce(), [{ begun: next.begun, digest: next.digest }])
  t.same(JSON.parse(keysInForce()[0]?.text ?? ''), JSON.parse(next.text))
})

t.test('keys stay known while no identifier uses them, for when their file is gone by then', async t => {
  const file = join(t.testdir(), 'keys.json')
  writeFileSync(file, fileOf('ci'))
  useKeys(file, LOG).release()
  rmSync(file)
  const keys = useKeys(file, LOG)
  t.teardown(() => keys.release())
  t.match(keys.value.keys, [{ name: 'ci' }])
  t.match(keys.value.trouble, /./)
})

t.test('a file that is not there is told in the log', async t => {
  const file = join(t.testdir(), 'keys.json')
  const lines: string[] = []
  const keys = useKeys(file, { ...LOG, warn: (_: object, message: string) => void lines.push(message) })
  t.teardown(() => keys.release())
  t.match(lines, [/^There is no file of API keys/])
  writeFileSync(file, fileOf('ci'))
  await waitUntil('it is read', () => keys.value.keys.length === 1)
})
