/** What reading the input of both services costs at most: each reader at the largest input it accepts. */
import t from 'tap'
import { limits } from '../../services/directory/limits.js'
import { bodyCheck } from '../../services/directory/routes/body.js'
import { newDirectorySchema } from '../../services/directory/schemas/directory.js'
import { readBulk, readBulkOperation } from '../../services/directory/scim/bulk.js'
import { parseAttributePath, parseFilter } from '../../services/directory/scim/filter.js'
import { clean, countValues } from '../../services/directory/scim/json.js'
import { parsePatch, parsePatchPath } from '../../services/directory/scim/patch-path.js'
import { readProjection } from '../../services/directory/scim/projection.js'
import { readQuestion } from '../../services/directory/scim/question.js'
import { readUser } from '../../services/directory/scim/user.js'
import { isKnown } from '../../services/directory/scim/version.js'
import { MAX_BODY_BYTES } from '../../services/identity/decode/decode.js'
import { ifMatch, prefers } from '../../services/identity/http.js'
import { parseForm } from '../../services/identity/index.js'
import { Languages } from '../../services/identity/languages.js'
import { readCookie } from '../../services/identity/routes/cookies.js'
import { hostileTexts, slowInputs } from '../helpers/hostile.js'
import { everyKind } from './identity/every-kind.js'

/** Node's own limit for all fields of a head. */
const MAX_FIELD = 16 * 1024
const BODY = limits.bodyBytes
/** For 1 MiB. */
const LINEAR_MS = 300

t.test('the bodies of forms cost what their bytes cost', async t => {
  const part = '--XX\r\nContent-Disposition: form-data; name="'
  const kinds = {
    'application/x-www-form-urlencoded': hostileTexts(MAX_BODY_BYTES, {
      starts: ['', 'traits.text=', 'traits.people.'],
      ends: [''],
      units: [
        ' ',
        '"',
        'a&',
        '%',
        '%2',
        'traits.tags=a&',
        'traits.people.1.name=a&',
        'traits.address.',
        '.1',
        'traits.',
      ],
    }),
    'multipart/form-data; boundary=XX': hostileTexts(MAX_BODY_BYTES, {
      starts: [
        '',
        part,
        `${part}traits.text"\r\n\r\n`,
        "--XX\r\nContent-Disposition: form-data; name*=utf-8''",
        '--XX\r\nA: ',
      ],
      ends: ['', '\r\n--XX--\r\n'],
      units: [
        ' ',
        '"',
        '--XX',
        '\r\n--X',
        '\r\n--XX\r\n',
        '--XX\r\n\r\n',
        `${part}a"\r\n\r\n\r\n`,
        '; name="a"',
        '\r\nA: b',
        '\\"',
        '%22',
      ],
    }),
    'application/json': hostileTexts(MAX_BODY_BYTES, {
      starts: ['', '{"traits":', '{"', '{"traits":{"text":"', '{"traits":{"extra":{"', '{"traits":{"tags":['],
      ends: ['', '"}}', '""]}}'],
      units: [' ', '"', '[', '{"a":', '"a":1,', '1,', '"a",', '\\u0061', '\\\\'],
    }),
  }
  for (const [contentType, texts] of Object.entries(kinds)) {
    const read = (text: string) => parseForm(everyKind, { contentType, body: Buffer.from(text) })
    t.same(await slowInputs(texts, read, LINEAR_MS), [], contentType)
  }
})

t.test('the header fields of a self-service request cost little', async t => {
  const languages = new Languages([])
  const texts = hostileTexts(MAX_FIELD, {
    starts: ['', 'multipart/form-data; boundary=', 'multipart/form-data; boundary="', 'sluice_csrf='],
    more: ['a-', 'de;q=0.1,', ';q=', '; boundary=', 'sluice_csrf=', '"1",', 'text/html;q=1,'],
  })
  for (const [name, read] of Object.entries({
    'Accept-Language': (text: string) => languages.choose(text),
    'If-Match': (text: string) => ifMatch(text)(7),
    Accept: (text: string) => prefers(text, 'text/html', 'application/json'),
    Cookie: (text: string) => readCookie({ header: () => text } as never, 'sluice_csrf'),
    'Content-Type': (text: string) => parseForm(everyKind, { contentType: text, body: Buffer.from('--a') }),
  })) {
    t.same(await slowInputs(texts, read), [], name)
  }
})

t.test('a filter or a path of SCIM costs little', async t => {
  const more = [
    'a eq 1 or ',
    'a eq "',
    'not (',
    'a[',
    '[',
    ']',
    'a.',
    '-1',
    '1e',
    '\\"',
    'urn:',
    'a pr and ',
    '].a',
  ]
  const texts = hostileTexts(limits.filterBytes, { starts: ['', 'a eq ', 'a eq "', 'a[b eq 1'], more })
  t.same(await slowInputs(texts, parseFilter), [])
})

t.test('a path in the body of a PATCH costs what its bytes cost, however long', async t => {
  const texts = hostileTexts(BODY, {
    starts: ['', 'a[', 'urn:'],
    ends: [''],
    units: ['a.', 'a:', '].', '[', '" '],
  })
  t.same(await slowInputs(texts, text => parsePatchPath(text), LINEAR_MS), [])
  t.same(await slowInputs(texts, text => parseAttributePath(text), LINEAR_MS), [])
})

t.test('the names in a search cost what their bytes cost, however many parts a name has', async t => {
  const texts = hostileTexts(BODY, { starts: ['', 'urn:'], ends: [''], units: ['a', 'a.', 'a:', '.', 'a.:'] })
  const names = {
    attributes: (text: string) => readProjection([text], undefined),
    excludedAttributes: (text: string) => readProjection(undefined, [text]),
    sortBy: (text: string) => readQuestion({ sortBy: text }, 'user'),
  }
  for (const [name, read] of Object.entries(names)) t.same(await slowInputs(texts, read, LINEAR_MS), [], name)
  for (const read of Object.values(names)) {
    t.throws(() => read('a.b.c.d.e.f.g.h.i'), /"a\.b\.c\.d\.e\.f\.g\.h\.i" has more than 8 names/)
  }
})

t.test('an If-None-Match field costs little', async t => {
  const texts = hostileTexts(MAX_FIELD, { more: ['W/"a",', 'W/', '",'] })
  const resource = { modified: '2026-01-02T03:04:05.000Z' } as never
  t.same(await slowInputs(texts, ifNoneMatch => isKnown(resource, { ifNoneMatch })), [])
})

/** JSON.parse alone takes some 170 ms for 1 MiB of brackets: it is not ours. */
t.test('a JSON body of the directory costs what its bytes cost, once it is parsed', async t => {
  const many = (size: number, item: (i: number) => string) =>
    Array.from({ length: Math.floor(size / item(0).length) }, (_, i) => item(i)).join()
  const size = BODY
  const texts = [
    `{"a":${'['.repeat(size / 2)}${']'.repeat(size / 2)}}`,
    `{"userName":"${'\\u0061'.repeat(size / 6)}"}`,
    `{"userName":"${' '.repeat(size)}"}`,
    `{"a":[${many(size, () => '0')}]}`,
    `{"a":[${many(size, () => '{}')}]}`,
    `{${many(size, i => `"a${1e8 + i}":1`)}}`,
    `{"a":{${many(size, i => `"a${1e8 + i}":1`)}}}`,
    `{"Operations":[${many(size, () => '{}')}]}`,
    `{"Operations":[${many(size, () => '{"op":"add","value":{"a":1}}')}]}`,
    `{"Operations":[{"op":"add","value":{${many(size, i => `"a${1e8 + i}":1`)}}}]}`,
    `{"Operations":[{"op":"add","value":{${many(size, i => `"a${1e8 + i}.b":1`)}}}]}`,
    `{"Operations":[{${many(size, i => `"a${1e8 + i}":1`)}}]}`,
    `{"Operations":[${many(size, () => '{"method":"POST","path":"/Users"}')}]}`,
    `{"Operations":[{"method":"POST","path":"/${'Users/'.repeat(size / 6)}"}]}`,
  ]
  const bodies = texts.map(text => ({ title: text.slice(0, 60), body: JSON.parse(text) as unknown }))
  for (const [name, read] of Object.entries({
    clean: (body: unknown) => clean(body),
    user: (body: unknown) => readUser(body),
    patch: (body: unknown) => parsePatch(body, []),
    bulk: (body: unknown) => readBulk(body).operations.map(readBulkOperation),
    size: (body: unknown) => countValues(body as never),
    management: bodyCheck(newDirectorySchema),
  })) {
    t.same(await slowInputs(bodies, ({ body }) => read(body), LINEAR_MS), [], name)
  }
})
