import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import t from 'tap'
import { parse } from 'yaml'
import { parseDuration } from '../../config/schema/duration.js'
import { editorSchemas } from '../../config/schema/generate.js'
import { pluginConfig } from '../../config/words/words.js'
import { pluginSchemas } from '../../gateway/plugins.js'

const read = (...path: string[]) => readFileSync(join('config', ...path), 'utf8')

t.test('the generated schemas are up to date', async t => {
  const files = editorSchemas(pluginSchemas)
  for (const [name, text] of Object.entries(files)) {
    t.equal(read(name), text, `config/${name}: run npm run schemas`)
  }
  for (const kind of Object.keys(pluginSchemas.limit)) t.ok(files[`${kind}.schema.json`], kind)
})

t.test('an editor accepts the shipped files by the schemas that their first lines name', async t => {
  const policies = readdirSync('config/policies').map(name => join('policies', name))
  for (const name of ['gateway.yaml', 'projects.yaml', ...policies]) {
    const text = read(name)
    const named = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1]
    t.ok(named, `${name} names its schema`)
    const schema = JSON.parse(read(join(name, '..', named ?? '')))
    t.equal(schema.$schema, 'http://json-schema.org/draft-07/schema#')
    const validate = new Ajv({ strict: true, strictTypes: false, strictRequired: false }).compile(schema)
    t.ok(validate(parse(text)), `${name}: ${JSON.stringify(validate.errors)}`)
  }
})

t.test(
  'an editor rejects what the loader rejects, and accepts files that leave out settings with defaults',
  async t => {
    const ajv = new Ajv({ strict: false })
    const accepts = (name: string) => ajv.compile(JSON.parse(read(name)))
    const gateway = accepts('gateway.schema.json')
    const least = {
      version: 1,
      upstreams: { a: { embedded: 'identity' } },
      routes: [{ path: '/**', upstream: 'a' }],
    }
    t.ok(gateway(least))
    t.notOk(gateway({ ...least, upstrems: {} }))
    t.notOk(gateway({ ...least, drain: '10sec' }))
    t.notOk(gateway({ ...least, identify: ['hots'] }))
    t.ok(gateway({ ...least, identify: ['host', { plugin: 'header', header: 'x-project' }] }))
    t.notOk(gateway({ ...least, identify: [{ plugin: 'header', haeder: 'x-project' }] }))
    const inFlight = accepts('in-flight.schema.json')
    const rule = { id: 'a', match: ['/a'], key: ['project'] }
    const file = (one: object) => ({ version: 1, kind: 'in-flight', rules: [one] })
    t.ok(inFlight(file(rule)))
    t.notOk(
      inFlight(file({ ...rule, key: ['header:x-a'] })),
      'a rule with a header in its key must say what to do without the header',
    )
    t.ok(inFlight(file({ ...rule, key: ['header:x-a'], missing: 'deny' })))
  },
)

t.test('an editor accepts every well-formed name of a plan or environment, declared or not', async t => {
  const ajv = new Ajv({ strict: false })
  const accepts = (name: string) => ajv.compile(JSON.parse(read(name)))
  const projects = accepts('projects.schema.json')
  const project = { id: 'acme', plan: 'team', environment: 'live' }
  t.ok(projects({ version: 1, plans: ['free', 'team'], environments: ['live'], projects: [project] }))
  t.notOk(projects({ version: 1, plans: ['team/blue'], projects: [] }))
  t.notOk(projects({ version: 1, projects: [{ ...project, plan: 'my plan' }] }))
  const quotas = { all: { burst: 1, sustained: 1 } }
  const limits = { version: 1, kind: 'project-limits', buckets: { all: ['*'] } }
  t.ok(accepts('project-limits.schema.json')({ ...limits, limits: [{ for: [{ plans: ['team'] }], quotas }] }))
})

t.test('every property of the schemas has a description', async t => {
  const bare: string[] = []
  const visit = (schema: Record<string, unknown>, path: string): void => {
    for (const [key, inner] of Object.entries(schema)) {
      if (typeof inner !== 'object' || inner === null) continue
      if (key === 'properties' && !/\/(if|else)$/.test(path)) {
        for (const [name, property] of Object.entries(inner as Record<string, { description?: string }>)) {
          if (!property.description) bare.push(`${path}/${name}`)
        }
      }
      visit(inner as Record<string, unknown>, `${path}/${key}`)
    }
  }
  for (const [name, text] of Object.entries(editorSchemas(pluginSchemas))) visit(JSON.parse(text), name)
  t.same(bare, [])
})

t.test('a duration is a whole number with its unit', async t => {
  const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
  fc.assert(
    fc.property(fc.nat(999_999), fc.constantFrom(...Object.entries(units)), (amount, [unit, ms]) => {
      return parseDuration(`${amount}${unit}`) === amount * ms
    }),
  )
  for (const wrong of ['', '5', 's', '1.5s', '-1s', '1 s', '1S', '1w', '1s ', '9999999999s', '٣s']) {
    t.throws(() => parseDuration(wrong), RangeError, JSON.stringify(wrong))
  }
})

t.test('a plugin gets the settings of a rule that are its own', async t => {
  const rule = {
    id: 'a',
    match: ['/a'],
    key: ['project'],
    mode: 'enforce',
    missing: 'skip',
    max: 2,
    slotTtl: 5,
  }
  t.same(pluginConfig(rule), { max: 2, slotTtl: 5 })
})
