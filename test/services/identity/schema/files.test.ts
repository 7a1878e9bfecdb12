import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import { matchList } from '../../../helpers/lists.js'
import { mongoUrl } from '../../../helpers/mongo.js'
import { tag } from '../decode/form-data.js'
import { HTML, REGISTRATION, type Reply, SECRET, started } from '../started.js'

const ADMIN = '/admin/identities'
const text = { type: 'string' }
const identifier = { type: 'string', 'x-identifier': true }

function schemaFile(id: string | undefined, properties: object, rest: object = {}): string {
  const traits = { type: 'object', properties, ...rest }
  return JSON.stringify({ ...(id ? { $id: id } : {}), type: 'object', properties: { traits } })
}

/** A folder of schema files, by name. */
function folderOf(t: Test, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-schemas-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  mkdirSync(join(folder, 'drafts.json'))
  return folder
}

const as = (project: string) => ({ 'x-sluice-project': project })

/** What must hold for every store. */
async function bySchema(t: Test, env: NodeJS.ProcessEnv): Promise<void> {
  const person = schemaFile('person', { email: identifier, phone: text })
  const company = schemaFile('company', { phone: identifier, staff: { type: 'integer' } })
  const choice = { '*': 'person', acme: 'company' }
  const folder = folderOf(t, {
    'a.json': person,
    'b.json': company,
    'projects.json': JSON.stringify(choice),
    'notes.txt': '{',
  })
  const data = folderOf(t, {})
  const before = await started(t, { ...env, IDENTITY_SCHEMA: folder, DATA_DIR: data }, SECRET)
  const page = await before.call('GET', REGISTRATION, { accept: HTML, ...as('acme') })
  t.ok(tag(page.text, 'traits.staff'), 'the form follows the schema of the project')
  t.notOk(tag(page.text, 'traits.email'))
  const both = 'traits.email=a%40x&traits.phone=1&traits.staff=7'
  const company1 = (await before.form(both, as('acme'))).json()
  t.match(company1, { schema_id: 'company', traits: { phone: '1', staff: 7 } })
  const person1 = (await before.form(both, as('other'))).json()
  t.match(person1, { schema_id: 'person', traits: { email: 'a@x', phone: '1' } })
  const second = (await before.form('traits.email=b%40x&traits.phone=1', as('other'))).json()
  t.equal(
    (await before.form('traits.phone=1', as('acme'))).status,
    409,
    'each project has the identifiers of its own schema',
  )
  t.equal((await before.form('traits.email=a%40x', as('other'))).status, 409)
  const wrongId = { schema_id: 'person', traits: {} }
  t.match((await before.json('POST', ADMIN, wrongId, as('acme'))).json().errors, [
    { code: 'schema_id', message: /"company"/ },
  ])
  await before.service.close()

  // The company's schema becomes stricter, and the other project switches to the company schema.
  const strict = schemaFile('company', { phone: identifier, vat: text }, { required: ['vat'] })
  writeFileSync(join(folder, 'b.json'), strict)
  writeFileSync(join(folder, 'projects.json'), JSON.stringify({ ...choice, other: 'company' }))
  await t.rejects(started(t, { ...env, IDENTITY_SCHEMA: folder, DATA_DIR: data }), {
    message:
      /two stored identities have the same phone .*, which must now be unique; change one of them first/,
  })
  writeFileSync(join(folder, 'projects.json'), JSON.stringify(choice))
  const mending = await started(t, { ...env, IDENTITY_SCHEMA: folder, DATA_DIR: data }, SECRET)
  t.equal(
    (await mending.form('traits.email=a%40x', as('other'))).status,
    409,
    'a failed start keeps the identifiers',
  )
  const mended = await mending.json('PATCH', `${ADMIN}/${second.id}`, { traits: { phone: '2' } }, as('other'))
  t.equal(mended.status, 200)
  await mending.service.close()
  writeFileSync(join(folder, 'projects.json'), JSON.stringify({ ...choice, other: 'company' }))
  const after = await started(t, { ...env, IDENTITY_SCHEMA: folder, DATA_DIR: data }, SECRET)
  t.equal(
    (await after.form('traits.vat=V&traits.phone=1', as('other'))).status,
    409,
    'the new identifier is enforced',
  )

  const path = `${ADMIN}/${company1.id}`
  const read = (await after.call('GET', path, as('acme'))).json()
  t.same(read.traits, { phone: '1', staff: 7 }, 'the stored traits are unchanged')
  t.match(read.schema_problems, [{ path: 'traits.vat', code: 'required', message: 'This is required.' }])
  const listed = (await after.call('GET', ADMIN, as('other'))).json().identities as Reply[]
  matchList(t, listed, [{ id: person1.id, schema_id: 'person', schema_problems: [{ code: 'required' }] }, {}])
  t.notMatch(JSON.stringify(listed.map(one => Object(one).schema_problems)), /a@x/)
  const patch = (traits: object) => after.json('PATCH', path, { traits }, as('acme'))
  t.match((await patch({ phone: '3' })).json().errors, [{ path: 'traits.vat', code: 'required' }])
  const written = (await patch({ vat: 'V' })).json()
  t.same([written.traits, written.schema_problems], [{ phone: '1', vat: 'V' }, undefined])
}

t.test('each project has its own schema, and a change of schema keeps stored identities', async t => {
  await t.test('SQLite', t => bySchema(t, {}))
  await t.test('MongoDB', async t => {
    const url = await mongoUrl(t)
    if (url !== undefined) await bySchema(t, { MONGODB_URL: url })
  })
})

/** What must hold for every store; `age` makes its unique keys look like those of an older release. */
async function identified(
  t: Test,
  env: NodeJS.ProcessEnv,
  age: (data: string) => Promise<void>,
): Promise<void> {
  const folder = folderOf(t, { 'one.json': schemaFile('one', { login: identifier }) })
  const data = folderOf(t, {})
  const given = { ...env, IDENTITY_SCHEMA: folder, DATA_DIR: data }
  const register = (service: Awaited<ReturnType<typeof started>>, login: string) =>
    service.form(new URLSearchParams({ 'traits.login': login }).toString())
  const others = [
    'ας-strasse',
    'ΑΣ-STRASSE',
    'ΑΣ-stra\u200Bße',
    'ΑΣ-straße ',
    'ΑΣ－straße',
    'ΑΣ-straße\u0000',
  ]

  const before = await started(t, given, SECRET)
  t.equal((await register(before, 'ΑΣ-straße')).status, 201)
  for (const login of others) t.equal((await register(before, login)).status, 409, JSON.stringify(login))
  await before.service.close()
  await age(data)
  const after = await started(t, given, SECRET)
  for (const login of others) t.equal((await register(after, login)).status, 409, JSON.stringify(login))
  t.equal((await register(after, 'ΑΣ-strase')).status, 201)
}

t.test('an identifier has one holder, whatever its letter case, forms and invisible characters', async t => {
  await t.test('SQLite', t =>
    identified(t, {}, async data => {
      const db = new Database(join(data, 'identity.sqlite'))
      db.exec("UPDATE unique_keys SET unique_key = 'old'; UPDATE identifier_revision SET revision = 'old'")
      db.close()
    }),
  )
  await t.test('MongoDB', async t => {
    const url = await mongoUrl(t)
    if (url === undefined) return
    await identified(t, { MONGODB_URL: url }, async () => {
      const client = new MongoClient(url)
      const [identity = {}] = await client.db().collection('identities').find().toArray()
      const field = Object.keys(identity).find(name => name.startsWith('unique_')) ?? ''
      await client
        .db()
        .collection('identities')
        .updateMany({}, { $set: { [field]: 'old' } })
      const settings = client.db().collection<{ _id: string }>('identity_settings')
      await settings.updateOne({ _id: 'identifiers' }, { $set: { revision: 'old' } })
      await client.close()
    })
  })
})

t.test('a stored field that is no longer in the schema is reported', async t => {
  const folder = folderOf(t, { 'one.json': schemaFile(undefined, { a: text, b: text }) })
  const data = folderOf(t, {})
  const env = { IDENTITY_SCHEMA: folder, DATA_DIR: data }
  const before = await started(t, env, SECRET)
  const { id } = (await before.form('traits.a=1&traits.b=2')).json()
  await before.service.close()
  writeFileSync(join(folder, 'one.json'), schemaFile(undefined, { a: text }))
  const { call } = await started(t, env, SECRET)
  t.match((await call('GET', `${ADMIN}/${id}`)).json(), {
    traits: { a: '1', b: '2' },
    schema_problems: [{ path: 'traits', code: 'undeclared' }],
  })
})

t.test('invalid choices of schemas stop the start with a message that says why', async t => {
  const one = schemaFile('one', { a: text })
  const two = schemaFile('two', { a: text })
  const cases: [Record<string, string>, RegExp][] = [
    [{}, /holds no schema; put a \.json file there/],
    [{ 'a.json': one, 'b.json': one }, /b\.json: another file has the id "one" too; give each its own \$id/],
    [
      { 'a.json': one, 'b.json': two },
      /holds several schemas; say which project has which in projects\.json, such as \{"\*": "one"\}/,
    ],
    [
      { 'a.json': one, 'projects.json': '{}' },
      /projects\.json: "\*" has to name the schema of every other project/,
    ],
    [{ 'a.json': one, 'projects.json': '[]' }, /projects\.json: has to be a JSON object/],
    [{ 'a.json': one, 'projects.json': '{' }, /projects\.json: /],
    [
      { 'a.json': one, 'b.json': two, 'projects.json': '{"*":"one","acme":"three"}' },
      /projects\.json: "acme" has to name one of the schemas "one", "two"/,
    ],
    [{ 'a.json': one, 'projects.json': '{"*":1}' }, /"\*" has to name one of the schemas "one"/],
    [{ 'a.json': '{"properties":{}}' }, /a\.json: the schema must be an object/],
  ]
  for (const [files, message] of cases) {
    await t.rejects(started(t, { IDENTITY_SCHEMA: folderOf(t, files) }), { message }, message.source)
  }
})
