import t from 'tap'
import { okta, patchOp, startService } from '../harness.js'
import { enterprise, find } from '../providers.js'
import { refusal, search } from './tools.js'

t.test('hostile bodies are refused or stored as plain data', async t => {
  const service = await startService(t)
  const { scim } = await service.directory()
  const refused = [
    '{"userName":"a","__proto__":{"polluted":1}}',
    '{"userName":"a","x":{"constructor":{"prototype":{"polluted":1}}}}',
    `{"userName":"a","x":${'['.repeat(5000)}${']'.repeat(5000)}}`,
    '{"userName":{"$ne":null}}',
    '{"userName":"\\ud800","active":{"$gt":""}}',
    '\u0000',
    JSON.stringify(okta('a\u0000')),
  ]
  for (const body of refused) t.equal((await scim('POST', '/Users', body)).status, 400, body.slice(0, 40))
  t.equal(({} as { polluted?: number }).polluted, undefined)
  const odd = okta('x\'"; DROP TABLE resources; --', {
    'a.b': { $where: '1' },
    deep: [[{ password: 'canary' }]],
  })
  const { status, body } = await scim('POST', '/Users', odd)
  t.equal(status, 201)
  const read = (await scim('GET', `/Users/${body.id}`)).body
  t.same([read['a.b'], read.deep], [{ $where: '1' }, [[{}]]], 'all but the password')
  t.equal(
    (await scim('GET', `/Users${find(`userName eq "x'\\"; drop table resources; --"`)}`)).body.totalResults,
    1,
  )
  t.notOk(JSON.stringify([await scim('GET', '/Users'), service.logged]).includes('canary'))
  const big = Array.from({ length: 2000 }, (_, n) => ({ value: `m${n}` }))
  t.equal((await scim('POST', '/Groups', { displayName: 'g', members: big })).status, 201)
})

t.test('hostile requests are refused quickly with a SCIM error, and change nothing', async t => {
  const service = await startService(t)
  const { scim } = await service.directory()
  const { id } = (await scim('POST', '/Users', okta('ada', { password: 'canary-1' }))).body
  const many = Array.from({ length: 10_000 }, () => ({ op: 'add', path: 'title', value: 'x' }))
  const polluting = '{"Operations":[{"op":"add","value":{"constructor":{"prototype":{"polluted":1}}}}]}'
  const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const calls: [string, string, unknown, number][] = [
    ['PATCH', `/Users/${id}`, patchOp(...many), 400],
    ['POST', '/Users', okta('big', { note: 'x'.repeat(5 * 1024 * 1024) }), 413],
    ['POST', '/Bulk', { Operations: [{ note: 'x'.repeat(5 * 1024 * 1024) }] }, 413],
    ['POST', '/Bulk', `{"Operations":${nested}}`, 200],
    ['POST', '/Users', `{"userName":"deep","x":${nested}}`, 400],
    ['PATCH', `/Users/${id}`, polluting, 400],
    ['PATCH', `/Users/${id}`, patchOp({ op: 'add', path: '__proto__.polluted', value: 1 }), 400],
    [
      'POST',
      '/Bulk',
      '{"Operations":[{"method":"POST","path":"/Users","bulkId":"b","data":{"__proto__":{"polluted":1}}}]}',
      200,
    ],
    [
      'GET',
      `/Users${search({ filter: `${'('.repeat(1500)}userName pr${')'.repeat(1500)}` })}`,
      undefined,
      400,
    ],
    ['GET', `/Users${search({ filter: `userName eq "${'x'.repeat(6000)}"` })}`, undefined, 400],
    ['GET', `/Users${search({ filter: 'password sw "c"' })}`, undefined, 400],
    ['GET', '/Users?filter[$ne]=x', undefined, 400],
    [
      'GET',
      `/Users${search({ attributes: Array.from({ length: 500 }, (_, n) => `a${n}`).join() })}`,
      undefined,
      400,
    ],
    ['POST', '/Users', { userName: { $gt: '' } }, 400],
    ['POST', '/Users/.search', { filter: { $where: '1' } }, 400],
    ['GET', '/Users/{"$ne":null}', undefined, 404],
  ]
  for (const [method, path, body, status] of calls) {
    const title = `${method} ${path} ${JSON.stringify(body)}`.slice(0, 80)
    const before = performance.now()
    const answer = await scim(method, path, body)
    t.equal(answer.status, status, title)
    if (status >= 400) t.match(answer, refusal(status), title)
    t.ok(performance.now() - before < 5000, `${title}: ${Math.round(performance.now() - before)} ms`)
  }
  t.equal(({} as { polluted?: number }).polluted, undefined)
  t.match((await scim('GET', '/Users')).body, { totalResults: 1, Resources: [{ id, title: undefined }] })

  for (const value of ['canary-2', { x: { password: 'canary-2' } }]) {
    await scim(
      'PATCH',
      `/Users/${id}`,
      patchOp({ op: 'replace', path: 'password', value }, { op: 'add', value: { password: value } }),
    )
  }
  await scim(
    'PUT',
    `/Users/${id}`,
    okta('ada', { PASSWORD: 'canary-3', [enterprise]: { password: 'canary-3' } }),
  )
  await scim('POST', '/Users', okta('canary-4@example.com', { active: 'canary-5' }))
  const shown = [
    await scim('GET', '/Users'),
    await service.manage('GET', '/users?tenant=tenant-1&product=app'),
  ]
  t.notOk(JSON.stringify(shown).includes('canary'), 'no response contains a password')
  t.notOk(
    JSON.stringify(service.logged).includes('canary'),
    'no log line contains a password, address or name',
  )
})
