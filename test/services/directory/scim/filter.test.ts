import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../../services/directory/model.js'
import { enterpriseUrn } from '../../../../services/directory/scim/attributes.js'
import { type Filter, parseFilter } from '../../../../services/directory/scim/filter.js'
import { idsOfFilter, termsOf, termsOfFilter } from '../../../../services/directory/scim/filter-query.js'
import { matches } from '../../../../services/directory/scim/match.js'
import { parsePatch } from '../../../../services/directory/scim/patch-path.js'
import { refuses } from './tools.js'

const ada: JsonObject = {
  id: 'A1',
  externalId: 'Ext-1',
  userName: 'Ada@Example.com',
  name: { givenName: 'Ada', familyName: 'Lovelace' },
  active: true,
  logins: 7,
  emails: [
    { type: 'work', value: 'ada@work.example', primary: true },
    { type: 'home', value: 'ada@home.example' },
  ],
  [enterpriseUrn]: { department: 'Engines' },
  meta: { created: '2026-01-02T03:04:05.000Z', lastModified: '2026-02-02T03:04:05.000Z' },
}

t.test('a filter matches as RFC 7644 says', async t => {
  const table: [string, boolean][] = [
    ['userName eq "ada@EXAMPLE.com"', true],
    ['USERNAME Eq "ada@example.com"', true],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "ada"', true],
    ['externalId eq "ext-1"', false],
    ['externalId eq "Ext-1"', true],
    ['id eq "a1"', false],
    ['userName ne "bob"', true],
    ['nickName ne "bob"', true],
    ['name.familyName co "love"', true],
    ['name.familyName ew "LACE"', true],
    ['name.familyName gt "Kelvin"', true],
    ['name.familyName lt "Kelvin"', false],
    ['title pr', false],
    ['name pr and emails pr', true],
    ['active eq true', true],
    ['active eq "True"', true],
    ['active eq false', false],
    ['logins ge 7 and logins le 7 and not (logins gt 7)', true],
    ['title eq null', true],
    ['userName ne null', true],
    ['emails eq "ada@home.example"', true],
    ['emails.value co "home"', true],
    ['emails[type eq "work" and value co "home"]', false],
    ['emails[type eq "home" and value co "home"]', true],
    ['emails[type eq "work"].value eq "ADA@work.example"', true],
    ['emails[type eq "work"].value eq "ada@home.example"', false],
    ['emails[type eq "home"].primary pr', false],
    ['userName sw "ada" and emails[type eq "work"].value ew "example" and active eq true', true],
    ['not (emails[type eq "work" or type eq "home"].value co "nobody")', true],
    [`${enterpriseUrn}:department eq "engines"`, true],
    ['meta.lastModified gt "2026-02-01T00:00:00Z"', true],
    ['meta.created eq "2026-01-02T03:04:05Z"', true],
    ['title pr or userName sw "ada" and active eq false', false],
    ['(title pr or userName sw "ada") and active eq true', true],
    ['userName eq "a\\"b"', false],
  ]
  for (const [text, expected] of table) {
    t.equal(matches(ada, parseFilter(text)), expected, text)
  }
})

t.test('an invalid filter is refused with the place of its fault, however deep its nesting', async t => {
  const bad = [
    ...[
      'userName',
      'userName eq',
      'userName eq bob',
      'userName xx "a"',
      'eq "a"',
      '(userName pr',
      'userName pr)',
    ],
    ...['userName eq "a" userName', 'active gt true', 'logins co 7', 'userName eq "\\x"', "userName eq 'a'"],
    ...[
      'emails[type eq "a"',
      'emails[type eq "a"].value',
      'emails[type eq "a"].password eq "x"',
      'emails[type eq "a"] .value eq "x"',
      '.value eq "x"',
      'not userName pr',
      '__proto__ pr',
      'a.constructor.b pr',
      'password eq "x"',
      'meta.created gt "yesterday"',
      'meta.lastModified eq ""',
      'a..b pr',
      '',
    ],
    ...[`${'('.repeat(60)}a pr${')'.repeat(60)}`, `a eq "${'x'.repeat(5000)}"`, '('.repeat(4000)],
  ]
  for (const text of bad)
    refuses(t, () => parseFilter(text), { status: 400, scimType: 'invalidFilter' }, text.slice(0, 40))
  refuses(t, () => parseFilter('userName eq bob'), {
    message: 'The filter needs a value in quotes at character 13.',
  })
})

const name = fc.constantFrom(
  'userName',
  'displayName',
  'externalId',
  'emails',
  'emails.value',
  'id',
  'active',
  'title',
)
const word = fc.constantFrom('a', 'B', 'b', 'true', '')
const filterText = fc.letrec<{ any: string }>(tie => ({
  any: fc.oneof(
    { maxDepth: 4 },
    fc
      .tuple(name, fc.constantFrom('eq', 'ne', 'co', 'pr'), word)
      .map(([n, op, v]) => (op === 'pr' ? `${n} pr` : `${n} ${op} "${v}"`)),
    fc.tuple(tie('any'), fc.constantFrom('and', 'or'), tie('any')).map(([l, op, r]) => `(${l}) ${op} (${r})`),
    tie('any').map(inner => `not (${inner})`),
    word.map(value => `emails[type eq "work" or value eq "${value}"]`),
    word.map(value => `emails[type eq "work"].value eq "${value}"`),
  ),
})).any
const user = fc.record(
  {
    userName: word,
    displayName: word,
    externalId: word,
    emails: fc.array(fc.record({ value: word, type: fc.constantFrom('work', 'home') }), { maxLength: 2 }),
  },
  { requiredKeys: ['userName'] },
)

t.test('property: lookup terms never hide a resource that the filter matches', async () => {
  fc.assert(
    fc.property(filterText, user, word, (text, raw, id) => {
      const filter: Filter = parseFilter(text)
      if (!matches({ ...raw, id }, filter)) return true
      const terms = termsOfFilter(filter)
      const own = termsOf({ raw: raw as JsonObject })
      const ids = idsOfFilter(filter)
      return (
        (terms === undefined || terms.some(term => own.includes(term))) &&
        (ids === undefined || ids.includes(id))
      )
    }),
    { numRuns: 2000 },
  )
})

t.test('property: the filter and path parsers either parse a text or refuse it with 400', async () => {
  const piece = fc.constantFrom(
    '(',
    ')',
    '[',
    ']',
    '"',
    '\\',
    ' ',
    'eq',
    'and',
    'not',
    'a',
    '.',
    ':',
    '1',
    '-',
    '$',
    'urn:x:y',
    '\u0000',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), pieces => {
      for (const parse of [
        parseFilter,
        (path: string) => parsePatch({ Operations: [{ op: 'add', path, value: 1 }] }, []),
      ]) {
        try {
          parse(pieces.join(''))
        } catch (error) {
          if ((error as { status?: number }).status !== 400) throw error
        }
      }
    }),
    { numRuns: 2000 },
  )
})
