import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'
import { matchesGolden } from '../helpers/golden.js'
import { inProject, root } from '../helpers/root.js'

const KRATOS = join('test', 'fixtures', 'openapi', 'kratos.yaml')
const OTHER = join('test', 'fixtures', 'openapi', 'other.json')

t.test('annotated documents become buckets that pass the check', async t => {
  const { out } = await sluice(['import', 'openapi', KRATOS, OTHER])
  const folder = join(t.testdir(), 'config')
  mkdirSync(join(folder, 'policies'), { recursive: true })
  for (const name of ['gateway.yaml', 'projects.yaml']) cpSync(join('config', name), join(folder, name))
  writeFileSync(join(folder, 'projects.yaml'), 'version: 1\nprojects: []\n')
  const limits = out
    .split('\n')
    .flatMap(line => /^ {2}([a-z-]+):$/.exec(line)?.[1] ?? [])
    .map(name => `      ${name}: { burst: 1, sustained: 10 }\n`)
  writeFileSync(
    join(folder, 'policies', 'limits.yaml'),
    `${out}limits:\n  - for: [{}]\n    quotas:\n${limits.join('')}`,
  )
  t.match(await sluice(['check', '--config', folder]), { code: 0, out: /gateway\.yaml: / })
  const explained = await sluice(['explain', 'PATCH', '/admin/identities/7', '--config', folder])
  t.match(explained.out, 'bucket: kratos-admin-low, by PATCH /admin/identities/{id}')
  t.match(explained.out, 'not kratos-admin-high (GET /admin/identities/{id}): another method')
})

/** A folder whose only policy file is what was printed, with its suggested limits. */
function folderOf(t: Test, printed: string): string {
  const folder = t.testdir({
    'gateway.yaml':
      'version: 1\nupstreams: { app: { url: "http://127.0.0.1:9" } }\nroutes: [{ path: /**, upstream: app }]\n',
    'projects.yaml': 'version: 1\nprojects: []\n',
    policies: {},
  })
  const text = printed.replace(/^# (limits:| {2})/gm, '$1')
  writeFileSync(join(folder, 'policies', 'api.yaml'), text)
  return folder
}

const imported = (name: string, ...more: string[]) =>
  sluice(['import', 'openapi', join('test', 'fixtures', 'openapi', name), ...more])
const bucketsOf = async (name: string, ...more: string[]) =>
  JSON.parse((await imported(name, '--json', ...more)).out).buckets

t.test('--by tag groups operations without a bucket, and the suggested limits pass the check', async t => {
  const { code, out, err } = await imported('shop.yaml', '--by', 'tag')
  t.match({ code, err }, { code: 0, err: '4 buckets with 9 patterns; 1 operation without a bucket.' })
  const folder = folderOf(t, out)
  t.match(await sluice(['check', '--config', folder, '--table']), { code: 0, out: /gateway\.yaml: / })
  const bucketOf = async (method: string, path: string) =>
    JSON.parse((await sluice(['explain', method, path, '--config', folder, '--json'])).out).bucket.name
  t.equal(await bucketOf('PUT', '/v1/products/7'), 'products')
  t.equal(await bucketOf('GET', '/v1/price-lists/7/export'), 'price-lists')
  t.equal(
    await bucketOf('POST', '/v1/orders/7/refunds'),
    'refunds',
    'an annotated operation keeps its bucket',
  )
  t.equal(await bucketOf('GET', '/health'), null, 'an operation without a tag has no bucket')
  t.match(
    out,
    '#       price-lists: { burst: 20, sustained: 600 }',
    'a bucket with reads only gets a larger limit',
  )
  t.match(out, '#       products: { burst: 5, sustained: 150 }')
})

t.test('a group whose name is invalid for a bucket gets a valid one', async t => {
  const file = join(t.testdir(), 'a.yaml')
  writeFileSync(file, 'openapi: 3.0.0\npaths: { /e: { get: { tags: [Constructor], responses: {} } } }\n')
  const { out } = await sluice(['import', 'openapi', file, '--by', 'tag'])
  t.match(out, 'constructor-bucket:')
  t.equal((await sluice(['check', '--config', folderOf(t, out)])).code, 0)
})

t.test('--by path gives each path a bucket, and --by operation each operation', async t => {
  const paths = await bucketsOf('shop.yaml', '--by', 'path')
  t.same(paths['products-product-id'], [
    'GET /v1/products/{productId}',
    'PUT /v1/products/{productId}',
    'DELETE /v1/products/{productId}',
  ])
  t.same(paths.health, ['GET /health'], 'the servers of an operation are used')
  const operations = await bucketsOf('shop.yaml', '--by', 'operation')
  t.same(operations['place-order'], ['POST /v1/orders'])
  t.same(operations.refunds, ['POST /v1/orders/{orderId}/refunds'])
  const { out } = await imported('shop.yaml', '--by', 'operation')
  t.match(await sluice(['check', '--config', folderOf(t, out)]), { code: 0 })
})

t.test('annotations, references and server variables are followed', async t => {
  const buckets = await bucketsOf('tickets.json')
  t.same(buckets, {
    tickets: ['GET /v2/api/tickets', 'GET /v2/api/tickets/{_ticket_id}'],
    'ticket-writes': ['POST /v2/api/tickets', 'DELETE /v2/api/tickets/{_ticket_id}'],
    search: ['GET /v2/api/search'],
  })
  const { out, err } = await imported('tickets.json', '--by', 'operation')
  t.match(err, /^5 buckets with 7 patterns; 0 operations/m, 'operations of webhooks are ignored')
  t.match(out, '  comments-change:\n    - "PATCH /v2/api/tickets/{_ticket_id}/comments/{comment-id}"\n')
  t.match(await sluice(['check', '--config', folderOf(t, out)]), { code: 0 })
})

t.test('paths become patterns, or are reported as left out', async t => {
  const { code, out, err } = await imported('files.yaml', '--by', 'tag')
  t.equal(code, 1)
  t.match(err, /files\.yaml:19:5 .*Left out: The segment "\{fileId\}\.\{format\}"/)
  t.match(err, '3 buckets with 7 patterns; 1 operation without a bucket.')
  t.match(out, '  meta:\n    - "GET /files-api"\n')
  t.match(await sluice(['check', '--config', folderOf(t, out)]), { code: 0 })
  const operations = await bucketsOf('files.yaml', '--by', 'operation')
  t.same(
    [operations.remove, operations['remove-2']],
    [['DELETE /files-api/files/{fileId}'], ['GET /files-api/files/{fileId}/{versions}']],
  )
  t.same(operations['get-shares-share-id'], ['GET /shares/{shareId}', 'GET /public/shares/{shareId}'])
})

t.test('an unknown grouping is refused', async t => {
  t.match(await imported('shop.yaml', '--by', 'tags'), {
    code: 2,
    err: /--by must be tag, path or operation, but it is "tags"\. Did you mean "?tag"?/,
  })
})

t.test('contradictions and invalid paths are reported at their places, and the rest is printed', async t => {
  const { code, out, err } = await sluice(['import', 'openapi', KRATOS, OTHER])
  t.equal(code, 1)
  t.match(out, '    - "GET /sessions/whoami"\n', 'a trailing slash is dropped')
  t.match(err, /kratos\.yaml:24:5 .*json.*: Left out: The segment "\{id\}\.json"/)
  t.match(err, /kratos\.yaml:26:36 .*"Not A Name" cannot be a name here/)
  t.match(err, /other\.json:7:7 .*"kratos-admin-low" at .*kratos\.yaml:16: both mean the same requests/)
  t.match(err, '6 buckets with 7 patterns; 1 operation without a bucket.')
})

t.test('--json reports the same for machines', async t => {
  matchesGolden(t, (await sluice(['import', 'openapi', KRATOS, OTHER, '--json'])).out, 'import.json')
})

t.test('--output writes a new file and never overwrites one', async t => {
  const file = join(t.testdir(), 'buckets.yaml')
  t.match(await sluice(['import', 'openapi', OTHER, '--output', file]), { code: 0, out: '' })
  t.match(readFileSync(file, 'utf8'), /^buckets:\n {2}kratos-admin-high:\n/m)
  t.match(await sluice(['import', 'openapi', OTHER, '--output', file]), { code: 2, err: /already exists/ })
})

t.test('the paths of the servers are prefixed to the patterns', async t => {
  const dir = t.testdir({
    'a.yaml': `openapi: 3.1.0
servers: [{ url: https://a.example/v1/ }, { url: /v2 }]
paths: { /x: { get: { x-ory-ratelimit-bucket: x } }, /: { get: { x-ory-ratelimit-bucket: x } } }
`,
  })
  const { code, out } = await sluice(['import', 'openapi', join(dir, 'a.yaml'), '--json'])
  t.equal(code, 0)
  t.same(JSON.parse(out).buckets, { x: ['GET /v1/x', 'GET /v2/x', 'GET /v1', 'GET /v2'] })
})

t.test('a variable of a server without a default is reported, and no pattern holds it', async t => {
  const dir = t.testdir({
    'a.yaml': `openapi: 3.1.0
servers: [{ url: "/{base}/v1" }]
paths: { /x: { get: { x-ory-ratelimit-bucket: x } } }
`,
  })
  const { code, out, err } = await sluice(['import', 'openapi', join(dir, 'a.yaml')])
  t.equal(code, 1)
  t.match(err, 'servers[0]: The variable {base} has no default: its path was taken to be "/".')
  t.match(out, '- "GET /x"')
})

t.test('files that are not OpenAPI 3 documents are reported', async t => {
  const dir = t.testdir({
    'two.yaml': 'swagger: "2.0"\npaths: {}\n',
    'broken.json': '{"openapi": "3.0.0", ',
    'list.yaml': '- 1\n',
    'odd.yaml': 'openapi: 3.0.0\nservers: 7\npaths: { /a: 7, /b: { get: [] }, /c: { $ref: other.yaml } }\n',
    'bytes.yaml': Buffer.from([0xff, 0xfe]),
  })
  const reading = (name: string) => sluice(['import', 'openapi', join(dir, name)])
  t.match(await reading('two.yaml'), { code: 1, err: /two\.yaml:1:1: This is not an OpenAPI 3 document/ })
  t.match(await reading('broken.json'), { code: 1, err: /broken\.json:1:\d+: Not well-formed YAML/ })
  t.match(await reading('list.yaml'), { code: 1, err: /not an OpenAPI 3 document/ })
  t.match(await reading('odd.yaml'), { code: 1, err: /behind \$ref is not followed/ })
  t.match(await reading('bytes.yaml'), { code: 2, err: /is not UTF-8 text/ })
  t.match(await reading('none.yaml'), { code: 2, err: /cannot be read: it does not exist/ })
  t.match(await sluice(['import', 'swagger', 'a']), { code: 2, err: /"import" reads openapi/ })
  t.match(await sluice(['import', 'openapi']), { code: 2, err: /needs openapi\|kong\S* FILE\.\.\./ })
})

t.test('a closed pipe ends a command without an error message', async t => {
  const cli = inProject('dist', 'gateway', 'cli.js')
  const command = `"${process.execPath}" "${cli}" schema gateway | head -1`
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', command], { cwd: root })
  t.same({ stdout, stderr }, { stdout: '{\n', stderr: '' })
})
