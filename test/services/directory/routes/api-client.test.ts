/** The API document as third parties use it: a validator, and a generated client. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import openapiTS, { astToString } from 'openapi-typescript'
import t from 'tap'
import ts from 'typescript'
import { inProject } from '../../../helpers/root.js'
import { apiKey, startService } from '../harness.js'

/** The code of an integrator; `api.ts` beside it is generated. */
const client = `
import createClient from 'openapi-fetch'
import type { paths } from './api.js'

export async function drive(baseUrl: string, key: string) {
  const api = createClient<paths>({ baseUrl, headers: { Authorization: \`Api-Key \${key}\` } })
  const made = await api.POST('/api/v1/directory-sync', { body: { tenant: 'acme', product: 'crm' } })
  if (!made.data) throw new Error('no directory')
  const { id: directoryId, scim: { secret } } = made.data.data
  const scim = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${secret}\` } })
  const path = { directoryId }
  const ada = await scim.POST('/api/scim/v2.0/{directoryId}/Users', {
    params: { path },
    body: { userName: 'ada@acme.example' },
  })
  const users = await api.GET('/api/v1/directory-sync/users', { params: { query: { directoryId, pageLimit: 10 } } })
  const emails: string[] = users.data?.data.map(user => user.email) ?? []
  const changed = await api.PATCH('/api/v1/directory-sync/{directoryId}', {
    params: { path },
    body: { deactivated: true },
  })
  const deactivated: boolean | undefined = changed.data?.data.deactivated
  const { error } = await api.GET('/api/v1/directory-sync/{directoryId}', {
    params: { path: { directoryId: 'unknown' } },
  })
  const code: number | undefined = error && ('error' in error ? error.error.code : error.status)
  // @ts-expect-error tenant is missing
  await api.POST('/api/v1/directory-sync', { body: { product: 'crm' } })
  return { created: ada.response.status, emails, deactivated, code }
}
`

t.test('the API document is valid OpenAPI 3.1', async t => {
  const service = await startService(t)
  const { body: document } = await service.call('GET', '/api/v1/openapi.json')
  const validator = new Validator()
  const { valid, errors } = await validator.validate(document)
  t.ok(valid, JSON.stringify(errors))
  t.equal(validator.version, '3.1')
})

t.test('a generated client compiles against the API document and works with the service', async t => {
  const service = await startService(t)
  const { body: document } = await service.call('GET', '/api/v1/openapi.json')
  // Fields with a default may be left out of a body. The folder is in the project, so that openapi-fetch resolves.
  const folder = t.testdir({ 'client.ts': client, 'package.json': '{"type":"module"}' })
  writeFileSync(join(folder, 'api.ts'), astToString(await openapiTS(document, { defaultNonNullable: false })))
  const options: ts.CompilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: false, skipLibCheck: true, types: ['node'] },
    ...{ target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext },
    typeRoots: [inProject('node_modules', '@types')],
  }
  const program = ts.createProgram([join(folder, 'client.ts')], options)
  const faults = ts.getPreEmitDiagnostics(program)
  t.same(
    faults.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
    [],
  )
  program.emit()
  t.match(readFileSync(join(folder, 'api.ts'), 'utf8'), /postDirectories/)
  const { drive } = await import(pathToFileURL(join(folder, 'client.js')).href)
  t.same(await drive(service.url, apiKey), {
    ...{ created: 201, emails: ['ada@acme.example'], deactivated: true, code: 404 },
  })
})
