/** When a set is read again for a token whose key is not in it. */
import t from 'tap'
import { KeySet } from '../../../../gateway/identify/jwt/key-set.js'
import type { KeySource, ReadSet } from '../../../../gateway/identify/jwt/key-source.js'
import type { Keys } from '../../../../gateway/identify/jwt/token.js'
import { waitUntil } from '../../../helpers/wait.js'
import { newKey } from './issuer.js'

const log = { debug() {}, info() {}, warn() {}, error() {} }

t.test('a read that began before a token came is waited for, and then the set is read once more', async t => {
  const [old, next] = [await newKey('old'), await newKey('next')]
  const reads: ((read: ReadSet) => void)[] = []
  const source: KeySource = {
    read: () => new Promise(resolve => reads.push(resolve)),
    hasChanged: async () => true,
  }
  const set = new KeySet(source, 'jwks', log, () => undefined)
  t.teardown(() => set.close())
  const answer = (...keys: (typeof old)[]) =>
    reads.at(-1)?.({ set: { keys: keys.map(({ jwk }) => jwk) } as Keys, skipped: [] })
  const find = () => set.keyOf({ alg: 'ES256', kid: 'next' }, { payload: '', signature: '' })
  set.start()
  answer(old)
  await waitUntil('the file to be looked at', () => reads.length === 2, 5000)
  const found = find()
  answer(old)
  await waitUntil('a read of its own', () => reads.length === 3)
  answer(old, next)
  t.ok(await found)
})
