import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { PEEK_BYTES } from '../../../gateway/decide/body-kind.js'
import { emailOrFlow } from '../../../gateway/decide/email-or-flow.js'
import { counterKey } from '../../../gateway/decide/key.js'
import type { Facts, KeyPart, Project, Rule } from '../../../gateway/types.js'
import { cpuMs } from '../../helpers/cpu-time.js'

const secret = Buffer.from('secret')

function facts(given: { path?: string; query?: string; headers?: Record<string, string> } = {}): Facts {
  return {
    id: 'request',
    method: 'POST',
    path: given.path ?? '/admin/identities/7',
    query: given.query ?? '',
    host: 'acme.localhost',
    client: '192.0.2.1',
    network: '192.0.2.1',
    trusted: false,
    authenticated: true,
    header: name => given.headers?.[name],
  }
}

function key(
  parts: KeyPart[],
  request: Facts,
  rule: Partial<Rule> = {},
  project = 'acme',
  emailOrFlow?: string,
) {
  const source = { file: 'f', line: 1 }
  const whole: Rule = {
    id: 'r',
    kind: 'k',
    mode: 'enforce',
    key: parts,
    missing: 'skip',
    onStoreError: 'local',
    config: {},
    source,
    ...rule,
  }
  const caller: Project = { id: project, plan: 'growth', environment: 'production' }
  return counterKey(whole, {
    facts: request,
    project: caller,
    route: 'POST /admin/identities/{id}',
    emailOrFlow,
  })
}

t.test('a key consists of the project’s hash tag, the mode, the rule’s id and its parts', async t => {
  t.equal(key(['project'], facts()), 'sluice:1:{acme}:e:k:r')
  t.match(key(['project', 'full-path'], facts()), /^sluice:1:\{acme\}:e:k:r:43:[\w-]{43}$/)
  t.equal(key(['project', 'path'], facts()), 'sluice:1:{acme}:e:k:r:22:/admin/identities/{id}')
  t.equal(
    key(['client-ip', 'method', 'auth'], facts()),
    'sluice:1:*:{k:r:9:192.0.2.1:4:POST:13:authenticated}:e',
  )
})

t.test(
  'the key of a rule by project alone is that of the request’s project, however often it is asked',
  async t => {
    const of = (id: string): Project => ({ id, plan: 'growth', environment: 'production' })
    const rule: Rule = {
      ...{ id: 'r', kind: 'k', mode: 'enforce', key: ['project'], missing: 'skip', onStoreError: 'local' },
      ...{ config: {}, source: { file: 'f', line: 1 } },
    }
    const observed: Rule = { ...rule, mode: 'report-only' }
    const [acme, other] = [of('acme'), of('other')]
    const ask = (rule: Rule, project: Project) =>
      counterKey(rule, { facts: facts(), project, route: '*', emailOrFlow: undefined })
    for (let i = 0; i < 2; i += 1) {
      t.equal(ask(rule, acme), 'sluice:1:{acme}:e:k:r')
      t.equal(ask(rule, other), 'sluice:1:{other}:e:k:r')
      t.equal(ask(observed, acme), 'sluice:1:{acme}:r:k:r')
      t.equal(ask(rule, of('acme')), 'sluice:1:{acme}:e:k:r', 'of another object, after a reload')
    }
  },
)

t.test('report-only rules count under keys of their own', async t => {
  t.not(key(['project'], facts()), key(['project'], facts(), { mode: 'report-only' }))
})

t.test('a trailing slash does not change the key', async t => {
  t.equal(key(['full-path'], facts({ path: '/admin/identities/7/' })), key(['full-path'], facts()))
})

t.test('a missing or empty part is skipped or shared, as the rule says', async t => {
  const parts: KeyPart[] = ['project', 'header:x-device']
  t.notMatch(
    key(parts, facts({ headers: { 'x-device': 'Bearer s3cret' } })),
    /s3cret/,
    'the value of a header is not in the key',
  )
  t.equal(key(parts, facts()), undefined)
  t.equal(key(parts, facts({ headers: { 'x-device': '' } })), undefined)
  t.equal(key(parts, facts(), { missing: 'shared' }), key(parts, facts(), { missing: 'shared' }))
  t.not(
    key(parts, facts(), { missing: 'shared' }),
    key(parts, facts({ headers: { 'x-device': '-' } }), { missing: 'shared' }),
  )
})

t.test('requests that differ in a part have different keys, and keys have bounded length', async t => {
  const text = fc.oneof(
    fc.string({ minLength: 1 }),
    fc.string({ minLength: 300, maxLength: 10_000 }),
    fc.constantFrom(':', '{', '}', '1:a', 'a:1', '\n'),
  )
  fc.assert(
    fc.property(fc.tuple(text, text), fc.tuple(text, text), ([a1, a2], [b1, b2]) => {
      const parts: KeyPart[] = ['project', 'header:a', 'header:b']
      const one = key(parts, facts({ headers: { a: a1, b: a2 } })) as string
      const other = key(parts, facts({ headers: { a: b1, b: b2 } })) as string
      return (one === other) === (a1 === b1 && a2 === b2) && one.length <= 300
    }),
  )
  t.not(
    key(['project', 'full-path'], facts({ path: '/c' }), { id: 'b' }, 'a:b'),
    key(['project', 'full-path'], facts({ path: '/c' }), { id: 'b' }, 'a'),
  )
})

t.test('the recovery key is the lower-case e-mail, else the flow id, from form, JSON or query', async t => {
  const form = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
  const json = { 'content-type': 'application/json' }
  const of = (headers: Record<string, string>, body: string, query = '') =>
    emailOrFlow(facts({ headers, query }), Buffer.from(body), secret)
  const ann = of(form, 'method=link&email=Ann%40Example.org')
  t.ok(ann)
  t.equal(of(json, '{"email":" ann@example.org "}'), ann)
  t.equal(of(form, 'email=ann@example.org', '?flow=f1'), ann, 'the e-mail takes precedence over the flow')
  const flow = of(form, '', '?flow=f1')
  t.ok(flow)
  t.not(flow, ann)
  t.equal(of(json, '{"flow":"f1"}'), flow)
  t.equal(of(form, 'flow=f1'), flow)
  for (const body of [
    '',
    '{',
    '[]',
    'null',
    '"x"',
    '{"email":5}',
    '{"email":""}',
    '{"__proto__":{"email":"a"}}',
  ]) {
    t.equal(of(json, body), undefined, body)
  }
  t.equal(of(form, 'email=ann@example.org&email=ann@example.org'), ann)
  t.equal(of({ 'content-type': 'text/plain' }, 'email=ann@example.org'), undefined)
  t.equal(emailOrFlow(facts({ headers: form }), undefined, secret), undefined)
})

t.test('the recovery key finds the e-mail in the query and in multipart forms', async t => {
  const multipart = { 'content-type': 'multipart/form-data; boundary=b0' }
  const json = { 'content-type': 'application/json' }
  const of = (headers: Record<string, string>, body: string, query = '') =>
    emailOrFlow(facts({ headers, query }), Buffer.from(body), secret)
  const part = (name: string, value: string, more = '') =>
    `--b0\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
  const ann = of(json, '{"email":"ann@example.org"}')
  const flow = of(json, '{"flow":"f1"}')
  t.equal(of({}, '', '?email=Ann%40example.org&flow=f1'), ann, 'query')
  t.equal(
    of(json, '{"method":"link"}', '?email=ann@example.org'),
    ann,
    'the query is read when the body has no e-mail',
  )
  t.equal(emailOrFlow(facts({ query: '?email=ann@example.org' }), undefined, secret), ann)
  t.equal(of(multipart, `${part('method', 'link')}${part('email', 'ANN@example.org')}--b0--\r\n`), ann)
  t.equal(of(multipart, `${part('flow', 'f1')}--b0--`), flow)
  t.equal(of(multipart, `${part('email', '')}--b0--`, '?flow=f1'), flow, 'an empty field does not count')
  t.equal(
    of(
      { 'content-type': 'multipart/form-data; boundary="b0"' },
      `preamble\r\n${part('email', 'ann@example.org')}--b0--`,
    ),
    ann,
  )
  for (const text of [
    `${part('email', 'ann@example.org')}--b0--`.replaceAll('\r', ''),
    '--b0\r\nContent-Type: text/plain\r\ncontent-disposition: form-data;\r\n name=email\r\n\r\nann@example.org\r\n--b0--',
    "--b0\r\nContent-Disposition: form-data; name*=utf-8''em%61il\r\n\r\nann@example.org\r\n--b0--",
    `${part('email', 'ann@example.org', '; filename=""')}--b0--`,
  ]) {
    t.equal(of(multipart, text), ann, 'lenient multipart forms are read as an upstream may read them')
  }
})

t.test('requests that name several addresses share one counter', async t => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const multipart = { 'content-type': 'multipart/form-data; boundary=b0' }
  const of = (headers: Record<string, string>, body: string, query = '') =>
    emailOrFlow(facts({ headers, query }), Buffer.from(body), secret)
  const unclear = of(form, 'email=q&email=ann@example.org')
  t.ok(unclear)
  t.not(unclear, of(form, 'email=ann@example.org'))
  t.equal(of(form, 'email=ann@example.org', '?email=bob@example.org'), unclear)
  t.equal(
    of(form, 'email=ann@example.org', '?email=carl@example.org&flow=f1'),
    unclear,
    'the flow makes no difference',
  )
  t.equal(of(form, 'flow=f1', '?flow=f2'), unclear)
  t.equal(
    of(form, 'email=ann@example.org&email=ANN@example.org', '?email=ann@example.org'),
    of(form, 'email=ann@example.org'),
  )
  const encoded =
    '--b0\r\nContent-Disposition: form-data; name="email"\r\nContent-Transfer-Encoding: base64\r\n\r\nYQ==\r\n--b0--'
  t.equal(of(multipart, encoded), unclear)
  t.equal(of({ 'content-type': 'multipart/form-data; boundary=a; boundary=b0' }, encoded), unclear)
  const json = { 'content-type': 'application/json' }
  for (const body of [
    '{"email":"q","email":"ann@example.org"}',
    '{"email":"q","Email":"ann@example.org"}',
    '{"email":"q" , "em\\u0061il"\n:\t"ann@example.org"}',
    '{"email":"q","x":[{"y":"}"}],"email":"ann@example.org"}',
    '{"email":"bad \\x escape"}',
  ]) {
    t.equal(of(json, body), unclear, body)
  }
  t.equal(of(json, '{"email":"ann@example.org"}', '?email=q'), unclear)
})

t.test('requests whose body only the upstream can read share one counter', async t => {
  const text = '{"email":"ann@example.org"}'
  const of = (headers: Record<string, string>, body: string | Buffer, query = '') =>
    emailOrFlow(facts({ headers, query }), Buffer.from(body), secret)
  const json = { 'content-type': 'application/json' }
  const multipart = { 'content-type': 'multipart/form-data; boundary=b0' }
  const unclear = of(json, '{"email":"q","email":"ann@example.org"}')
  const ann = of(json, text)
  t.equal(of({ ...json, 'content-encoding': 'gzip' }, gzipSync(text)), unclear)
  t.equal(of({ ...json, 'content-encoding': 'gzip' }, gzipSync(text), '?email=ann@example.org'), unclear)
  t.equal(of({ ...json, 'content-encoding': 'identity' }, text), ann)
  t.equal(of(json, Buffer.from(`\uFEFF${text}`, 'utf16le')), unclear, 'UTF-16, recognized by its first bytes')
  t.equal(of({ 'content-type': 'application/json; charset=utf-7' }, '+AHs-+ACI-email+ACI-:'), unclear)
  t.equal(of({ 'content-type': 'application/json; charset="UTF-8"' }, text), ann)
  t.equal(of({ 'content-type': 'application/json, text/plain' }, text), unclear, 'two fields, joined')
  t.equal(of({ 'content-type': 'text/plain, application/json' }, text), unclear)
  t.equal(of({ ...json, 'content-encoding': 'gzip' }, '', '?email=ann@example.org'), ann, 'without a body')
  t.equal(of({ 'content-type': 'text/plain', 'content-encoding': 'gzip' }, gzipSync(text)), undefined)
  t.equal(of({ 'content-type': 'text/plain' }, Buffer.from(`\uFEFF${text}`, 'utf16le')), unclear)
  const padded = { 'content-type': 'application/x-www-form-urlencoded' }
  const long = `email=ann@example.org&pad=${'x'.repeat(PEEK_BYTES)}&email=q`.slice(0, PEEK_BYTES)
  t.equal(of(padded, long), unclear, 'a long body, whose end may override its beginning')
  t.equal(of(padded, long.slice(0, -1)), ann)
  const named = (name: string) =>
    of(multipart, `--b0\r\nContent-Disposition: form-data; ${name}\r\n\r\nann@example.org\r\n--b0--`)
  t.equal(named('name*0="em"; name*1="ail"'), unclear, 'a name in parts')
  t.equal(of({ 'content-type': 'multipart/form-data; boundary*0=b0' }, '--b0--'), unclear)
  for (const name of ['name="em\\ail"', "name='email'", 'name=Email']) t.equal(named(name), ann, name)
})

t.test('what ordinary clients write about a body does not make it unclear', async t => {
  const form = 'application/x-www-form-urlencoded'
  const of = (type: string, body: string) =>
    emailOrFlow(facts({ headers: { 'content-type': type } }), Buffer.from(body), secret)
  const ann = of(form, 'email=ann@example.org')
  const unclear = of(form, 'email=q&email=ann@example.org')
  for (const charset of ['', "'utf-8'", 'ASCII', 'latin1', 'iso-8859-15', 'windows-1252', 'cp1252']) {
    t.equal(of(`${form}; charset=${charset}`, 'email=ann@example.org'), ann, charset)
  }
  for (const charset of ['utf-16', 'utf-7', 'iso-2022-jp', 'ibm037', 'hz-gb-2312']) {
    t.equal(of(`${form}; charset=${charset}`, 'email=ann@example.org'), unclear, charset)
  }
  const part = (field: string, value = 'ann@example.org') =>
    of(
      'multipart/form-data; boundary=b0',
      `--b0\r\nContent-Disposition: form-data; name="email"\r\n${field}\r\n\r\n${value}\r\n--b0--`,
    )
  for (const encoding of ['8bit', 'binary', '7BIT ']) {
    t.equal(part(`Content-Transfer-Encoding: ${encoding}`), ann, encoding)
  }
  for (const encoding of ['base64', 'quoted-printable', '8bit, base64', '']) {
    t.equal(part(`Content-Transfer-Encoding: ${encoding}`), unclear, encoding)
  }
  t.equal(part('Content-Type: text/plain; charset=UTF-8'), ann)
  const escaped = 'ann\x1b(B@example.org'
  t.equal(part('Content-Type: text/plain; charset=iso-2022-jp', escaped), unclear, 'escapes that disappear')
})

t.test('the names of form fields count in any letter case', async t => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const of = (body: string, query = '') => emailOrFlow(facts({ headers, query }), Buffer.from(body), secret)
  t.equal(of('Email=ann@example.org'), of('email=ann@example.org'))
  t.equal(of('', '?EMAIL=ann@example.org'), of('email=ann@example.org'))
  t.equal(of('Email=ann@example.org&email=q'), of('email=q&email=ann@example.org'))
})

t.test('the fields of a JSON body are those that any upstream may read', async t => {
  const headers = { 'content-type': 'application/json' }
  const of = (body: string) => emailOrFlow(facts({ headers }), Buffer.from(body), secret)
  const ann = of('{"email":"ann@example.org"}')
  for (const body of [
    '{"EMAIL":"ann@example.org"}',
    '{"email":"ann@example.org","email":null}',
    '{"email":"ann@example.org","Email":"ANN@example.org"}',
    '{"\\u0065mail":"\\u0061nn@example.org"}',
    '\uFEFF {"email":"ann@example.org",}',
    '{"email":"ann@example.org"} {"email":"q"}',
    '{"a":{"email":"q"},"b":["email"],"c":"email","email":"ann@example.org","d":"\\"}"}',
  ]) {
    t.equal(of(body), ann, body)
  }
  for (const body of ['[{"email":"q"}]', '["email","q"]', '{"a":{"email":"q"}}', '{"x":"email","y":"q"}']) {
    t.equal(of(body), undefined, body)
  }
  const whole = '{"flow":"f1","email":"ann@example.org"}'
  for (let length = 0; length < whole.length; length++) t.equal(of(whole.slice(0, length)), undefined)
  const hostile = ['{', '[', '"', '\\"', '{"":', '"":"",', '"\\x":"",', '"email":"\\x",', '{"a":"\\', ':']
  const texts = hostile.map(text => text.repeat(65_536 / text.length))
  for (const text of [...texts, `"${'\\u0041'.repeat(5000)}"${':'.repeat(30_000)}`]) {
    const took = await cpuMs(() => of(`{${text}}`))
    t.ok(took < 1000, `${text.slice(0, 10)} takes no time`)
  }
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.json()), fc.string({ minLength: 1 }), (fields, flow) => {
      const body = JSON.stringify({ ...fields, email: 5, flow })
      return of(body) === of(JSON.stringify({ flow }))
    }),
  )
})

t.test(
  'a multipart form that is cut shares one counter, as upstreams differ on it, and reading a hostile one is fast',
  async t => {
    const headers = { 'content-type': 'multipart/form-data; boundary=b0' }
    const email = '--b0\r\nContent-Disposition: form-data; name="email"\r\n\r\nann@example.org\r\n'
    const whole = `${email}--b0\r\nContent-Disposition: form-data; name="flow"\r\n\r\nf1\r\n--b0--\r\n`
    const of = (body: Buffer) => emailOrFlow(facts({ headers }), body, secret)
    const ann = of(Buffer.from(whole))
    const unclear = of(Buffer.from(`${email}${whole.replace('ann', 'bob')}`))
    for (let length = 0; length <= whole.length; length++) {
      const read = length === 0 ? undefined : length >= whole.length - '\r\n'.length ? ann : unclear
      t.equal(of(Buffer.from(whole.slice(0, length))), read, `${length} bytes`)
    }
    const garbage = fc.uint8Array({ minLength: 1, maxLength: 300 })
    fc.assert(fc.property(garbage, bytes => of(Buffer.from(bytes)) === unclear))
    for (const text of ['--b0\r\n', '\r\n--b0', 'x\n', '--b0 \n\n']) {
      const took = await cpuMs(() => of(Buffer.from(text.repeat(65_536 / text.length))))
      t.ok(took < 1000, 'reading it is fast')
    }
  },
)

t.test('an e-mail never appears in a key', async t => {
  const hash = emailOrFlow(
    facts({ headers: { 'content-type': 'application/json' } }),
    Buffer.from('{"email":"ann@example.org"}'),
    secret,
  )
  t.notMatch(key(['project', 'path', 'email-or-flow'], facts(), {}, 'acme', hash), /ann|example/)
})

t.test('no path or header value appears in a key', async t => {
  const [path, device] = ['/admin/identities/ann@example.org', 'Bearer s3cret']
  const given = facts({ path, headers: { 'x-device': device } })
  const long = facts({ path: path.repeat(20), headers: { 'x-device': device } })
  for (const request of [given, long]) {
    const text = key(['project', 'full-path', 'header:x-device', 'method'], request) as string
    for (const canary of ['ann', 'example', 's3cret']) t.notOk(text.includes(canary), canary)
  }
  t.equal(key(['full-path'], given), key(['full-path'], facts({ path })), 'equal paths share a counter')
  t.not(key(['full-path'], given), key(['full-path'], facts({ path: path.toUpperCase() })))
})
