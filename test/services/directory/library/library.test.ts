/** The library compared with the API: every operation of the document has a call with the same answer. */
import t from 'tap'
import { type DirectoryRequest, open, start } from '../../../../services/directory/index.js'
import { apiKey, okta } from '../harness.js'

const silent = () => undefined
const log = { debug: silent, info: silent, warn: silent, error: silent }

interface Document {
  paths: Record<string, Record<string, { operationId: string }>>
}

async function started(env: NodeJS.ProcessEnv) {
  const service = await start({ env: { API_KEYS: apiKey, ...env }, log })
  const ask = async (method: string, path: string, authorization: string, body?: unknown) => {
    const headers = { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const sent = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const answer = await fetch(`${service.url}${path}`, sent)
    const text = await answer.text()
    // Without BASE_URL the library returns paths.
    return { answer, data: JSON.parse(text.replaceAll(service.url, '') || 'null') }
  }
  const manage = async (path: string) =>
    (await ask('GET', `/api/v1/directory-sync${path}`, `Api-Key ${apiKey}`)).data
  const describe = async () => (await (await fetch(`${service.url}/api/v1/openapi.json`)).json()) as Document
  return { service, ask, manage, describe }
}

t.test('each operation of the management API has a library call, and reads return the same', async t => {
  const { service, manage, describe } = await started({
    ...{ DATA_DIR: t.testdir(), EXTERNAL_CLIENT_ID: 'client', EXTERNAL_CLIENT_SECRET: 'secret' },
  })
  t.teardown(() => service.close())
  const { directories, users, groups, events, webhooks, webhookLogs, deadLetters } = service
  const { consentLinks, setupLinks, pulls, external } = service
  const acme = { tenant: 'acme', product: 'crm' }
  const { data: directory } = await directories.create({ ...acme, type: 'okta-scim-v2' })
  const { data: pulled } = await directories.create({ tenant: 'b', product: 'crm', type: 'external' })
  if (!directory || !pulled) throw new Error('no directory')
  const of = { directoryId: directory.id }
  const write = (resourceType: string, body: object) =>
    service.handle({ ...of, method: 'POST', resourceType, body, apiSecret: directory.scim.secret })
  const ids = []
  for (const name of ['ada', 'bob', 'eve']) ids.push((await write('Users', okta(name))).data?.id)
  const members = ids.map(value => ({ value }))
  const team = String((await write('Groups', { displayName: 'Team', members })).data?.id)
  const ada = String(ids[0])
  const where = `directoryId=${of.directoryId}`

  /** By operation: the call, and for reads the path of the same HTTP request. */
  const calls: Record<string, [call: () => Promise<{ error: unknown }>, path?: string]> = {
    postDirectories: [() => directories.create({ tenant: 'c', product: 'crm' })],
    getDirectories: [() => directories.list(acme), '?tenant=acme&product=crm'],
    getProduct: [
      () => directories.listOfProduct({ product: 'crm', pageLimit: 1 }),
      '/product?product=crm&pageLimit=1',
    ],
    getDirectory: [() => directories.get(directory.id), `/${directory.id}`],
    patchDirectory: [() => directories.update(directory.id, { name: 'People' })],
    postDirectoryScimSecret: [() => directories.rotateScimSecret(directory.id, { overlap_seconds: 60 })],
    getUsers: [
      () => users.list({ ...of, group: team, pageLimit: 2 }),
      `/users?${where}&group=${team}&pageLimit=2`,
    ],
    getUsersById: [() => users.get(ada, acme), `/users/${ada}?tenant=acme&product=crm`],
    getGroups: [() => groups.list({ ...of, name: 'team' }), `/groups?${where}&name=team`],
    getGroupsById: [() => groups.get(team, of), `/groups/${team}?${where}`],
    getGroupsByIdMembers: [
      () => groups.members(team, { ...of, pageLimit: 2 }),
      `/groups/${team}/members?${where}&pageLimit=2`,
    ],
    getFeed: [() => events.feed({ ...of, pageLimit: 2 }), `/feed?${where}&pageLimit=2`],
    postCronProcessEvents: [() => events.process()],
    getEvents: [() => webhookLogs.list(of), `/events?${where}`],
    getEventsById: [() => webhookLogs.get('unknown'), '/events/unknown'],
    deleteEvents: [() => webhookLogs.deleteAll(of)],
    getDeadLetters: [() => deadLetters.list(of), `/dead-letters?${where}`],
    postDeadLettersReplay: [() => deadLetters.replayAll(of)],
    deleteDeadLettersById: [() => deadLetters.delete('unknown')],
    postDeadLettersByIdReplay: [() => deadLetters.replay('unknown')],
    postDirectoryConsentLink: [() => consentLinks.create(pulled.id, { lifetime_seconds: 60 })],
    deleteDirectoryConsentLink: [() => consentLinks.deleteAll(pulled.id)],
    postCronSyncExternal: [() => pulls.begin()],
    getConsentAuthorize: [() => external.generateAuthorizationUrl({ directoryId: 'unknown' })],
    getConsentCallback: [() => external.getAccessToken({ directoryId: 'unknown', code: 'x' })],
    postDirectoryWebhooks: [
      () => webhooks.create(directory.id, { endpoint: 'https://example.com/', secret: 'hush-hush' }),
    ],
    getDirectoryWebhooks: [() => webhooks.list(directory.id), `/${directory.id}/webhooks`],
    getDirectoryWebhooksByWebhookId: [
      () => webhooks.get(directory.id, 'unknown'),
      `/${directory.id}/webhooks/unknown`,
    ],
    patchDirectoryWebhooksByWebhookId: [() => webhooks.update(directory.id, 'unknown', { disabled: true })],
    postDirectoryWebhooksByWebhookIdTest: [() => webhooks.test(directory.id, 'unknown')],
    deleteDirectoryWebhooksByWebhookId: [() => webhooks.delete(directory.id, 'unknown')],
    postDirectorySetupLinks: [() => setupLinks.create(directory.id)],
    getDirectorySetupLinks: [() => setupLinks.list(directory.id), `/${directory.id}/setup-links`],
    deleteDirectorySetupLinksByLinkId: [() => setupLinks.delete(directory.id, 'unknown')],
    deleteDirectorySetupLinks: [() => setupLinks.deleteAll(directory.id)],
    deleteDirectory: [() => directories.delete(pulled.id)],
  }
  const unknown = new Set([
    'getEventsById',
    'getDirectoryWebhooksByWebhookId',
    'patchDirectoryWebhooksByWebhookId',
    'postDirectoryWebhooksByWebhookIdTest',
    'deleteDirectoryWebhooksByWebhookId',
    'deleteDirectorySetupLinksByLinkId',
    'deleteDeadLettersById',
    'postDeadLettersByIdReplay',
    'getConsentAuthorize',
    'getConsentCallback',
  ])
  const document = await describe()
  const operations = Object.entries(document.paths)
    .filter(([path]) => !path.startsWith('/api/scim/v2.0/'))
    .flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId))
  t.same(
    [...operations].sort(),
    Object.keys(calls).sort(),
    'the calls of this test are exactly the operations of the document',
  )
  for (const [name, [call, path]] of Object.entries(calls)) {
    const answer = await call()
    t.equal(answer.error === null, !unknown.has(name), `${name} ${JSON.stringify(answer.error)}`)
    if (path) t.match(answer, await manage(path), name)
  }

  const { data: two, pageToken } = (await groups.members(team, { ...of, pageLimit: 2 })) as {
    data: unknown[]
    pageToken?: string
  }
  t.equal(two.length, 2)
  t.match(await groups.members(team, { ...of, ...(pageToken ? { pageToken } : {}) }), { data: { length: 1 } })
})

t.test('the handler responds to each operation of the SCIM API as HTTP does', async t => {
  const { service, ask, describe } = await started({ DATA_DIR: t.testdir() })
  t.teardown(() => service.close())
  const { data: directory } = await service.directories.create({ tenant: 'acme', product: 'crm' })
  if (!directory) throw new Error('no directory')
  const { id: directoryId, scim } = directory
  const handle = (request: Partial<DirectoryRequest>) =>
    service.handle({ method: 'GET', resourceType: '', directoryId, apiSecret: scim.secret, ...request })
  const ada = await handle({ method: 'POST', resourceType: 'Users', body: okta('ada') })
  const id = String(ada.data?.id)
  const document = await describe()
  const base = '/api/scim/v2.0/{directoryId}'
  const operations = Object.entries(document.paths)
    .filter(([path]) => path.startsWith(base))
    .flatMap(([path, methods]) =>
      Object.keys(methods).map(method => [path.slice(base.length), method] as const),
    )
  t.ok(operations.length > 20)
  for (const [path, lower] of operations) {
    const [first = '', second = ''] = path.split('/').slice(1)
    const method = lower.toUpperCase()
    // A body that is wrong for all operations is rejected alike, and changes nothing for the next one.
    const body = method === 'GET' || method === 'DELETE' ? undefined : []
    const named = second === '{id}' ? (method === 'GET' && first === 'Users' ? id : 'unknown') : second
    const [resourceType, resourceId] = first === '.search' ? ['', '.search'] : [first, named]
    const ours = await handle({ method, resourceType, resourceId, ...(body ? { body } : {}) })
    const address = `${scim.path}/${[first, named].filter(Boolean).join('/')}`
    const theirs = await ask(method, address, `Bearer ${scim.secret}`, body)
    t.same([ours.status, ours.data], [theirs.answer.status, theirs.data], `${method} ${path}`)
    t.equal(ours.etag ?? null, theirs.answer.headers.get('etag'), `${method} ${path} ETag`)
  }
})

t.test('conditions, projections, sorting, discovery, search and Bulk work in process', async t => {
  const service = await open({ env: { DATA_DIR: t.testdir() }, log })
  t.teardown(() => service.close())
  const { data: directory } = await service.directories.create({ tenant: 'acme', product: 'crm' })
  if (!directory) throw new Error('no directory')
  t.equal(directory.scim.endpoint, directory.scim.path, 'without BASE_URL the endpoint is a path')
  const handle = (method: string, resourceType: string, more: Partial<DirectoryRequest> = {}) =>
    service.handle({
      method,
      resourceType,
      directoryId: directory.id,
      apiSecret: directory.scim.secret,
      ...more,
    })
  const body = okta('ada')
  const { etag = '', location, data } = await handle('POST', 'Users', { body })
  const resourceId = String(data?.id)
  t.match(location, new RegExp(`/Users/${resourceId}$`))
  t.match(await handle('GET', 'Users', { resourceId, headers: { 'if-none-match': etag } }), {
    status: 304,
    data: null,
    etag,
  })
  const change = { body: { Operations: [{ op: 'replace', path: 'title', value: 'Dr.' }] }, resourceId }
  t.match(await handle('PATCH', 'Users', { ...change, headers: { 'if-match': etag } }), { status: 200 })
  t.match(await handle('PATCH', 'Users', { ...change, headers: { 'if-match': etag } }), { status: 412 })
  const names = { attributes: 'userName,emails.value' }
  const shown = await handle('GET', 'users', { resourceId, query: names })
  t.same(Object.keys(shown.data ?? {}).sort(), ['emails', 'id', 'schemas', 'userName'])
  await handle('POST', 'Users', { body: okta('bob') })
  const query = { sortBy: 'userName', sortOrder: 'descending', excludedAttributes: 'emails' }
  t.match(await handle('GET', 'Users', { query }), {
    data: { Resources: [{ userName: 'bob' }, { userName: 'ada' }] },
  })
  t.match(await handle('GET', 'ServiceProviderConfig'), { status: 200, data: { etag: { supported: true } } })
  t.match(await handle('GET', 'Schemas'), { data: { totalResults: 3 } })
  t.match(await handle('GET', 'ResourceTypes', { resourceId: 'User' }), { data: { endpoint: '/Users' } })
  t.match(await handle('GET', 'ResourceTypes', { query: { filter: 'id pr' } }), { status: 403 })
  t.match(await handle('GET', '', { query: { filter: 'userName eq "bob"' } }), { data: { totalResults: 1 } })
  const search = { body: { filter: 'userName eq "bob"' }, resourceId: '.search' }
  t.match(await handle('POST', '', search), { data: { totalResults: 1 } })
  const told: string[] = []
  const operations = [{ method: 'POST', path: '/Users', bulkId: 'x', data: okta('eve') }]
  const bulk = { method: 'POST', resourceType: 'Bulk', body: { Operations: operations } }
  const request = { ...bulk, directoryId: directory.id, apiSecret: directory.scim.secret }
  t.match(await service.handle(request, ({ event }) => told.push(event)), {
    status: 200,
    data: { Operations: [{ status: '201' }] },
  })
  t.same(told, ['user.created'])
  t.match(await handle('PATCH', 'Bulk'), { status: 405 })
  t.match(await handle('GET', 'Me'), { status: 501 })
})

t.test('library calls refuse malformed ids and never send them elsewhere', async t => {
  const service = await open({ env: { DATA_DIR: t.testdir() }, log })
  t.teardown(() => service.close())
  for (const id of ['', '.', '..', undefined, 7]) {
    t.match(await service.directories.delete(id as string), { error: { code: 400 } }, String(id))
  }
  t.match(await service.directories.get('a/b?c'), { error: { code: 404 } })
  t.match(await service.directories.create('x' as never), { error: { code: 400 } })
})
