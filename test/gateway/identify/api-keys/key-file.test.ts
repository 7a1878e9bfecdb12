/** The file of API keys: what it may hold, and what is said of one that holds something else. */
import t from 'tap'
import {
  type ApiKey,
  newKey,
  parseKeyFile,
  readingKeys,
  stateOf,
} from '../../../../gateway/identify/api-keys/key-file.js'

const made = () => newKey({ project: 'acme', name: 'ci', scopes: ['read'] }, new Date()).entry
const fileOf = (keys: readonly unknown[], more: object = {}) => JSON.stringify({ version: 1, keys, ...more })

t.test('what is wrong with a key is said with its place, and no value is quoted', async t => {
  const wrongs: readonly [object, RegExp][] = [
    [{ id: 'Secret-1' }, /^keys\[1\]\.id must be 8 lower-case letters or digits\.$/],
    [{ project: '' }, /^keys\[1\]\.project must be an id/],
    [{ name: 5 }, /^keys\[1\]\.name must be a name/],
    [{ prefix: 'sluice_otherone' }, /^keys\[1\]\.prefix must be "sluice_" and the id\.$/],
    [{ hash: 'sluice_abcdefgh_Secret' }, /^keys\[1\]\.hash must be a SHA-256, of 64 lower-case hexadecimal/],
    [{ hash: ['a'.repeat(64)] }, /^keys\[1\]\.hash must/],
    [{ scopes: 'read' }, /^keys\[1\]\.scopes must be a list of scopes/],
    [{ scopes: ['a b'] }, /^keys\[1\]\.scopes must/],
    [{ created: undefined }, /^keys\[1\]\.created must be a time in UTC such as/],
    [{ expires: 'tomorrow' }, /^keys\[1\]\.expires must be a time/],
    [{ expires: '2026-12-31' }, /^keys\[1\]\.expires must be a time/],
    [{ expires: '2026-12-31T18:00:00+02:00' }, /^keys\[1\]\.expires must be a time/],
    [{ expires: null }, /^keys\[1\]\.expires must be a time/],
    [{ revoked: true }, /^keys\[1\]\.revoked must be a time/],
    [{ revoked: '2026-13-01T00:00:00Z' }, /^keys\[1\]\.revoked must be a time/],
    [
      { revokd: '2026-12-31T18:00:00Z' },
      /^keys\[1\]\.revokd is not known: a key has id, project, .*revoked\.$/,
    ],
    [{ 'Secret\u001b': 1 }, /^keys\[1\] has a member that is not known/],
  ]
  for (const [wrong, sentence] of wrongs) {
    t.throws(() => parseKeyFile(fileOf([made(), { ...made(), ...wrong }])), { message: sentence })
    t.throws(() => parseKeyFile(fileOf([made(), { ...made(), ...wrong }])), { message: /^((?!Secret).)*$/ })
  }
  t.throws(() => parseKeyFile(fileOf([null])), { message: /^keys\[0\] must be a key/ })
  for (const text of [fileOf([], { more: 1 }), '{"version":2,"keys":[]}', 'null', '[]', '"a"']) {
    t.throws(() => parseKeyFile(text), { message: /^It must be \{ "version": 1, "keys": \[ … \] \}/ })
  }
})

t.test('two keys cannot have one id or hash', async t => {
  const [a, b] = [made(), made()]
  t.throws(() => parseKeyFile(fileOf([a, b, { ...made(), hash: a.hash }])), {
    message: /^keys\[2\]\.hash is that of keys\[0\]: remove one/,
  })
  t.throws(() => parseKeyFile(fileOf([a, b, { ...b, hash: 'a'.repeat(64) }])), {
    message: /^keys\[2\]\.id is that of keys\[1\]/,
  })
})

t.test(
  'times of a clock that is ahead: a key made in the future works, one revoked then is revoked',
  async t => {
    const next = new Date(Date.now() + 86_400_000).toISOString()
    const { keys } = parseKeyFile(
      fileOf([
        { ...made(), created: next },
        { ...made(), revoked: next },
      ]),
    )
    t.same(
      keys.map(key => stateOf(key, Date.now())),
      ['active', 'revoked'],
    )
  },
)

t.test('many keys are read in steps, so that requests are answered meanwhile', async t => {
  const keys: ApiKey[] = Array.from({ length: 10_000 }, made)
  const steps = readingKeys(fileOf(keys))
  let count = 0
  let next = steps.next()
  for (; !next.done; next = steps.next()) count += 1
  t.equal(count, 11, 'a step for the JSON, and one for each thousand keys')
  t.equal(next.value.byHash.size, 10_000)
})
