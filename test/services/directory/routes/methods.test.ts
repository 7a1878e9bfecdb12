/** Methods that a path does not support. */
import { request } from 'node:http'
import t from 'tap'
import { apiKey, startService } from '../harness.js'

/** A call with any method and no Content-Type; fetch supports only some methods. */
function call(url: string, method: string, authorization: string, body = ''): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, ...(body ? { 'content-length': body.length } : {}) }
    const asked = request(url, { method, headers }, answer => {
      answer.resume()
      answer.on('end', () => resolve([answer.statusCode ?? 0, String(answer.headers.allow)]))
    })
    asked.on('error', reject).end(body)
  })
}

t.test('a method that a path does not support gets 405 with Allow, with or without a body', async t => {
  const service = await startService(t)
  const { id, secret } = await service.directory()
  const key = `Api-Key ${apiKey}`
  const bearer = `Bearer ${secret}`
  const scim = `${service.url}/api/scim/v2.0/${id}`
  const management = `${service.url}/api/v1/directory-sync`
  for (const method of ['QUERY', 'TRACE', 'PROPFIND', 'PUT', 'OPTIONS', 'PURGE']) {
    for (const body of method === 'TRACE' ? [''] : ['', '{}']) {
      t.same(await call(management, method, key, body), [405, 'POST, GET, HEAD'], method)
      t.same(await call(`${scim}/Users`, method, bearer, body), [405, 'POST, GET, HEAD'], method)
      t.same(await call(`${service.url}/api/v1/openapi.json`, method, key, body), [405, 'GET, HEAD'], method)
      t.equal((await call(`${service.url}/elsewhere`, method, key, ''))[0], 404, method)
    }
    t.equal((await call(management, method, 'Api-Key wrong'))[0], 401)
  }
  t.same(await call(`${management}/cron/process-events`, 'HEAD', key), [405, 'POST'])
})
