/** Key sets that identifiers share. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { useKeySet } from '../../../../gateway/identify/jwt/shared-key-sets.js'
import { waitUntil } from '../../../helpers/wait.js'
import { newKey } from './issuer.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }

t.test('a set stays known while no identifier uses it, for when its issuer is away by then', async t => {
  const file = join(t.testdir(), 'jwks.json')
  const key = await newKey('one')
  writeFileSync(file, JSON.stringify({ keys: [key.jwk] }))
  const before = useKeySet(file, false, log)
  await waitUntil('it is read', () => before.value.inForce !== undefined)
  before.release()
  rmSync(file)
  const after = useKeySet(file, false, log)
  t.teardown(() => after.release())
  t.match(after.value.inForce, { set: { keys: [{ kid: 'one' }] } })
})
