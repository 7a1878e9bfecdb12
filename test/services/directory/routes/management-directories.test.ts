import { Ajv2020 } from 'ajv/dist/2020.js'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { apiKey, okta, patchOp, type Service, startReceiver, startService } from '../harness.js'

const idsOf = (answer: { body: { data: { id: string }[] } }): string[] => answer.body.data.map(({ id }) => id)

function changes(t: Test, service: Service): void {
  t.test(
    'a PATCH changes the name, webhook and log setting of a directory, and keeps fields that are not sent',
    async t => {
      const { id } = await service.directory({
        webhook_url: 'https://example.com/a',
        webhook_secret: 'hush-hush',
      })
      const before = (await service.manage('GET', `/${id}`)).body.data
      const patch = async (body: unknown) => service.manage('PATCH', `/${id}`, body)
      const renamed = await patch({ name: 'New name', log_webhook_events: true })
      t.same(renamed.body, { data: { ...before, name: 'New name', log_webhook_events: true }, error: null })
      t.same((await service.manage('GET', `/${id}`)).body, renamed.body)
      const steps: [object, object][] = [
        [
          { webhook_url: 'https://example.com/b' },
          { endpoint: 'https://example.com/b', secret: 'hush-hush' },
        ],
        [
          { webhook: { secret: 'other-secret' } },
          { endpoint: 'https://example.com/b', secret: 'other-secret' },
        ],
        [{ webhook_url: '' }, { endpoint: '', secret: '' }],
        [
          { webhook: { endpoint: 'https://example.com/c', secret: 'third-secret' } },
          { endpoint: 'https://example.com/c', secret: 'third-secret' },
        ],
        [{ webhook: null }, { endpoint: '', secret: '' }],
      ]
      for (const [body, webhook] of steps) {
        t.match((await patch(body)).body.data.webhook, webhook, JSON.stringify(body))
      }
      t.match((await service.manage('GET', `/${id}`)).body.data, { name: 'New name', scim: before.scim })
      const refused: [unknown, RegExp][] = [
        [{}, /none of the fields that can be changed: name, /],
        [{ id }, /none of the fields that can be changed/],
        [{ webhookUrl: 'https://example.com' }, /Unknown field "webhookUrl". Did you mean "webhook_url"\?/],
        [{ name: 'Other', log_webhook_event: true }, /Did you mean "log_webhook_events"\?/],
        [{ colour: 'red' }, /Unknown field "colour". Known here: name, /],
        [{ webhook: { url: 'https://example.com' } }, /Unknown field "url" in webhook/],
        [{ webhook: { secret: 'hush-hush' }, webhook_url: '' }, /send one or the other/],
        [{ scim: { secret: 'mine' } }, /scim is made by the service: POST .*scim-secret/],
        [{ external_access_token: 'x' }, /comes from a consent/],
        [{ ['x'.repeat(5000)]: 1 }, /Unknown field "x{60}…"/],
        [JSON.stringify({ a: 1 }).replace('a', '__proto__'), /Unknown field "__proto__"/],
        [{ tenant: 'other' }, /tenant cannot be changed/],
        [{ type: 'azure-scim-v2' }, /type cannot be changed/],
        [{ deactivated: 'yes' }, /deactivated must be true or false/],
        [{ name: 7 }, /name must be a string/],
        [{ webhook_url: 'https://example.com' }, /belong together/],
        [{ webhook_secret: 'hush-hush' }, /belong together/],
        [{ webhook_url: 'ftp://x/', webhook_secret: 'hush-hush' }, /http or https/],
        [{ webhook: 'https://example.com' }, /must be a JSON object/],
        [[], /must be a JSON object/],
      ]
      for (const [body, message] of refused) {
        t.match(await patch(body), { status: 400, body: { error: { message, code: 400 } } })
      }
      t.match(await service.manage('PATCH', '/unknown', { name: 'x' }), { status: 404 })
    },
  )

  t.test('a new directory takes the fields of a PATCH and refuses unknown ones', async t => {
    const owner = { tenant: 'forms', product: `p-${Math.random()}` }
    const make = async (more: unknown) =>
      service.manage('POST', '', typeof more === 'string' ? more : { ...owner, ...(more as object) })
    const webhook = { endpoint: 'https://example.com/a', secret: 'hush-hush' }
    const made = await make({ webhook, log_webhook_events: true, deactivated: true })
    t.match(made, { status: 201, body: { data: { webhook, log_webhook_events: true, deactivated: true } } })
    t.match((await make({ webhook: null })).body.data.webhook, { endpoint: '', secret: '' })
    const before = (await service.manage('GET', `?tenant=forms&product=${owner.product}`)).body.data
    for (const [more, message] of [
      [{ tenent: 'x' }, /Unknown field "tenent". Did you mean "tenant"\?/],
      [{ webhookUrl: webhook.endpoint }, /Did you mean "webhook_url"\?/],
      [
        { webhook: { url: webhook.endpoint } },
        /Unknown field "url" in webhook. Known here: endpoint, secret/,
      ],
      [{ webhook: { endpoint: webhook.endpoint } }, /belong together/],
      [{ webhook: [] }, /webhook must be a JSON object/],
      [{ webhook, webhook_secret: 'other-secret' }, /send one or the other/],
      [{ id: 'mine' }, /id is assigned by the service/],
      [{ scim: { secret: 'mine' } }, /scim is made by the service/],
      [{ log_webhook_events: 'yes' }, /must be true or false/],
    ] as const) {
      t.match(await make(more), { status: 400, body: { error: { message, code: 400 } } })
    }
    t.same((await service.manage('GET', `?tenant=forms&product=${owner.product}`)).body.data, before)
    t.match(await service.manage('POST', `/${before[0].id}/scim-secret`, { overlap_second: 0 }), {
      status: 400,
      body: { error: { message: /Did you mean "overlap_seconds"\?/ } },
    })
  })

  t.test(
    'a deactivated directory refuses SCIM requests, and says so only to clients with its secret',
    async t => {
      const { id, scim } = await service.directory()
      await scim('POST', '/Users', okta('ada'))
      await service.manage('PATCH', `/${id}`, { deactivated: true })
      for (const [method, path, body] of [
        ['GET', '/Users', undefined],
        ['POST', '/Users', okta('eve')],
        ['GET', '/ServiceProviderConfig', undefined],
      ] as const) {
        t.match(await scim(method, path, body), {
          status: 403,
          body: { status: '403', detail: /deactivated/ },
        })
      }
      t.equal((await scim('GET', '/Users', undefined, { authorization: 'Bearer wrong' })).status, 401)
      t.equal(
        idsOf(await service.manage('GET', `/users?directoryId=${id}`)).length,
        1,
        'integrators can still read its users',
      )
      await service.manage('PATCH', `/${id}`, { deactivated: false })
      t.equal((await scim('GET', '/Users')).body.totalResults, 1)
    },
  )

  t.test('a rotated SCIM secret works at once, and the old one until its overlap ends', async t => {
    const { id, scim, secret } = await service.directory()
    const status = async (token: string) =>
      (await scim('GET', '/Users', undefined, { authorization: `Bearer ${token}` })).status
    const rotate = async (body?: unknown) => service.manage('POST', `/${id}/scim-secret`, body)
    const first = await rotate()
    const fresh = first.body.data.scim.secret
    t.not(fresh, secret)
    const left = Date.parse(first.body.data.scim.old_secret_valid_until) - Date.now()
    t.ok(Math.abs(left - 24 * 60 * 60 * 1000) < 60_000, 'the default overlap is a day')
    t.same([await status(secret), await status(fresh)], [200, 200])
    const next = (await rotate({ overlap_seconds: 60 })).body.data.scim
    t.equal(
      next.old_secret_valid_until,
      first.body.data.scim.old_secret_valid_until,
      'a shorter overlap does not shorten an earlier one',
    )
    t.same([await status(secret), await status(fresh), await status(next.secret)], [200, 200, 200])
    const now = Date.now()
    const clock = t.capture(Date, 'now', () => now + 61_000)
    t.same(
      [await status(secret), await status(fresh)],
      [200, 401],
      'each old secret is valid until its own time',
    )
    clock.restore()
    const second = await rotate({ overlap_seconds: 0 })
    t.notOk('old_secret_valid_until' in second.body.data.scim)
    t.same(
      [await status(secret), await status(fresh), await status(second.body.data.scim.secret)],
      [401, 401, 200],
    )
    for (let n = 0; n < 8; n++) t.equal((await rotate()).status, 200)
    t.match(await rotate(), { status: 409, body: { error: { message: /8 old secrets are still valid/ } } })
    t.equal((await rotate({ overlap_seconds: 0 })).status, 200)
    t.equal((await rotate('null')).status, 400)
    for (const overlap_seconds of [-1, 1.5, '60', null, 10_000_000]) {
      t.match(await rotate({ overlap_seconds }), {
        status: 400,
        body: { error: { message: /overlap_seconds/ } },
      })
    }
    t.equal((await service.manage('POST', '/unknown/scim-secret')).status, 404)
  })

  t.test('parallel changes of a directory are all kept', async t => {
    const { id } = await service.directory()
    const answers = await Promise.all([
      service.manage('PATCH', `/${id}`, { name: 'Both' }),
      service.manage('PATCH', `/${id}`, { log_webhook_events: true }),
      service.manage('POST', `/${id}/scim-secret`),
    ])
    t.same(
      answers.map(answer => answer.status),
      [200, 200, 200],
    )
    const { data } = (await service.manage('GET', `/${id}`)).body
    t.match(data, {
      name: 'Both',
      log_webhook_events: true,
      scim: { secret: answers[2]?.body.data.scim.secret },
    })
  })

  t.test('removing a directory removes its contents, and nothing of another directory', async t => {
    const tenant = `removal-${Math.random()}`
    const gone = await service.directory({ tenant })
    const kept = await service.directory({ tenant })
    for (const { scim } of [gone, kept]) {
      const { id } = (await scim('POST', '/Users', okta('ada'))).body
      await scim('POST', '/Groups', { displayName: 'Team', members: [{ value: id }] })
    }
    t.same((await service.manage('DELETE', `/${gone.id}`)).body, { data: null, error: null })
    t.equal((await service.manage('GET', `/${gone.id}`)).status, 404)
    t.equal((await service.manage('DELETE', `/${gone.id}`)).status, 404)
    t.match(await gone.scim('GET', '/Users'), { status: 404, body: { status: '404' } })
    const scope = `?tenant=${tenant}&product=app`
    for (const list of ['users', 'groups']) {
      t.equal(idsOf(await service.manage('GET', `/${list}${scope}`)).length, 1, list)
    }
    t.same(idsOf(await service.manage('GET', scope)), [kept.id])
    t.equal((await kept.scim('GET', '/Groups')).body.Resources[0].members.length, 1)
  })

  t.test('a page token continues a list, even when earlier entries are deleted', async t => {
    const tenant = `pages-${Math.random()}`
    const product = `product-${Math.random()}`
    const [one, two, three] = [
      await service.directory({ tenant, product }),
      await service.directory({ tenant: `${tenant}-b`, product }),
      await service.directory({ tenant, product }),
    ]
    const walk = async (path: string) => {
      const seen: string[][] = []
      let token = ''
      for (let page = 0; page < 9; page++) {
        const { status, body, headers } = await service.manage(
          'GET',
          `${path}&pageLimit=2${token && `&pageToken=${token}`}`,
        )
        t.equal(status, 200)
        seen.push(body.data.map((each: { id?: string; user_id?: string }) => each.id ?? each.user_id))
        const next = /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
        if (!next) return seen
        token = new URL(next).searchParams.get('pageToken') ?? ''
        if ('error' in body) t.equal(body.pageToken, token)
        t.equal(
          (await service.call('GET', next, undefined, { authorization: `Api-Key ${apiKey}` })).status,
          200,
        )
      }
      return seen
    }
    t.same(await walk(`/product?product=${product}`), [[one.id, two.id], [three.id]])
    t.same(await walk(`?tenant=${tenant}&product=${product}`), [[one.id, three.id]])
    const made: string[] = []
    for (let n = 0; n < 5; n++) made.push((await one.scim('POST', '/Users', okta(`u${n}`))).body.id)
    const scope = `tenant=${tenant}&product=${product}`
    t.same(await walk(`/users?${scope}`), [made.slice(0, 2), made.slice(2, 4), made.slice(4)])
    const members = made.map(value => ({ value }))
    const group = (await one.scim('POST', '/Groups', { displayName: 'Team', members })).body.id
    t.same((await walk(`/groups/${group}/members?${scope}`)).flat(), made.toSorted())
    t.same(await walk(`/groups?directoryId=${one.id}`), [[group]])

    const first = await service.manage('GET', `/users?${scope}&pageLimit=2`)
    await one.scim('DELETE', `/Users/${made[0]}`)
    const second = await service.manage(
      'GET',
      `/users?${scope}&pageLimit=2&pageToken=${first.body.pageToken}`,
    )
    t.same(idsOf(second), made.slice(2, 4), 'no entry is skipped')
    for (const query of [
      'pageToken=x',
      `pageToken=${first.body.pageToken}&pageOffset=1`,
      `pageToken=${'a'.repeat(999)}`,
    ]) {
      t.match(await service.manage('GET', `/users?${scope}&${query}`), {
        status: 400,
        body: { error: { message: /pageToken/ } },
      })
    }
    t.equal((await service.manage('GET', '/product')).status, 400)
  })
}

for (const store of ['SQLite', 'MongoDB']) {
  t.test(`directories on ${store}`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL === undefined) return
    changes(t, await startService(t, { MONGODB_URL }))
  })
}

t.test('the responses match their schemas in the API document', async t => {
  const receiver = await startReceiver(t)
  const service = await startService(t, { WEBHOOK_ALLOW_PRIVATE: 'true' })
  const { status, body: document } = await service.call('GET', '/api/v1/openapi.json')
  t.equal(status, 200)
  t.match(document, { openapi: /^3\.1/, info: { title: String, version: String } })
  const paths: string[] = Object.keys(document.paths)
  t.notOk(
    paths.some(path => path.startsWith('/api/v1/dsync')),
    'the alias of the API is left out',
  )
  const operations = paths.flatMap(path =>
    Object.entries<{ security?: unknown; summary?: string }>(document.paths[path]),
  )
  t.ok(
    operations.every(([, each]) => each.summary && each.security),
    'each operation has a summary and its security',
  )
  const names = operations.map(([, each]) => (each as { operationId?: string }).operationId)
  t.ok(names.every(name => name && /^[a-z][A-Za-z]+$/.test(name)) && new Set(names).size === names.length)
  t.ok(
    ['postDirectories', 'patchDirectory', 'getGroupsByIdMembers', 'putScimUsersById'].every(name =>
      names.includes(name),
    ),
  )
  t.same(document.servers, [{ url: '/' }])
  const gateways = document.paths['/api/v1/directory-sync/users'].get.responses
  for (const status of ['429', '4XX', '5XX'])
    t.ok(gateways[status].content['application/problem+json'], status)

  const ajv = new Ajv2020({ strict: false, logger: false })
  ajv.addSchema(document, 'api')
  const pointed = (part: string): string =>
    encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))
  const check = (path: string, method: string, code: string, type: string, body: unknown): void => {
    const pointer = ['paths', path, method.toLowerCase(), 'responses', code, 'content', type, 'schema']
    const validate = ajv.compile({ $ref: `api#/${pointer.map(pointed).join('/')}` })
    t.ok(validate(body), `${method} ${path} ${code} ${ajv.errorsText(validate.errors)}`)
  }
  const root = '/api/v1/directory-sync'
  const { id, scim, secret } = await service.directory({
    webhook_url: receiver.url,
    webhook_secret: 'hush-hush',
  })
  const user = (await scim('POST', '/Users', okta('ada'))).body.id
  const group = (await scim('POST', '/Groups', { displayName: 'Team', members: [{ value: user }] })).body.id
  const scope = `?directoryId=${id}`
  const calls: [string, string, string, string, unknown?][] = [
    ['POST', '', '', '201', { tenant: 't', product: 'p' }],
    ['POST', '', '', '4XX', { tenant: 'a:b', product: 'p' }],
    ['GET', '', '?tenant=t&product=p', '200'],
    ['GET', '/product', '?product=p', '200'],
    ['GET', '/{directoryId}', `/${id}`, '200'],
    ['GET', '/{directoryId}', '/unknown', '4XX'],
    ['PATCH', '/{directoryId}', `/${id}`, '200', { name: 'x' }],
    ['POST', '/{directoryId}/scim-secret', `/${id}/scim-secret`, '200'],
    ['GET', '/users', `/users${scope}`, '200'],
    ['GET', '/users', '/users', '4XX'],
    ['GET', '/users/{id}', `/users/${user}${scope}`, '200'],
    ['GET', '/groups', `/groups${scope}`, '200'],
    ['GET', '/groups/{id}', `/groups/${group}${scope}`, '200'],
    ['GET', '/groups/{id}/members', `/groups/${group}/members${scope}`, '200'],
    ['DELETE', '/{directoryId}', `/${id}`, '200'],
  ]
  const intake = '/api/scim/v2.0/{directoryId}'
  const authorization = `Bearer ${secret}`
  for (const [method, template, path, code, body] of [
    ['GET', '/Users', '/Users', '200'],
    ['GET', '/Users', '/Users?filter=x', '4XX'],
    ['POST', '/Users/.search', '/Users/.search', '200', { filter: 'userName pr' }],
    ['PATCH', '/Users/{id}', `/Users/${user}`, '200', patchOp({ op: 'replace', value: { title: 'T' } })],
    ['GET', '/Schemas', '/Schemas', '200'],
  ] as const) {
    const answer = await scim(method, path, body, { authorization })
    check(`${intake}${template}`, method, code, 'application/scim+json', answer.body)
  }
  for (const [method, template, path, code, body] of calls) {
    const answer = await service.manage(method, path.startsWith('?') ? template + path : path, body)
    check(`${root}${template}`, method, code, 'application/json', answer.body)
  }

  const page = await fetch(`${service.url}/api/v1/docs`)
  const html = await page.text()
  t.equal(page.status, 200)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'; style-src 'sha256-/)
  t.match(html, '<code>GET /api/v1/directory-sync/users/{id}</code> Read a user')
  t.match(
    html,
    /<a href="#schema-NewDirectory">NewDirectory<\/a>.*<details id="schema-NewDirectory">/s,
    'the page links to the schema',
  )
  t.notMatch(html, /<script|src=/, 'the page needs one request only')
})
