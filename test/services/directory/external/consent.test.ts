import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../../helpers/mongo.js'
import { apiKey, type Service, startService } from '../harness.js'
import { comeBack, consent, linkTo, openLink } from './consenting.js'
import { startProvider } from './provider.js'

const ENCRYPTION_KEY = randomBytes(32).toString('base64')
const authorization = `Api-Key ${apiKey}`

async function external(service: Service): Promise<string> {
  const fields = { tenant: 'acme', product: 'crm', type: 'external' }
  return (await service.manage('POST', '', fields)).body.data.id
}

const tokenOf = async (service: Service, id: string): Promise<string> =>
  (await service.manage('GET', `/${id}`)).body.data.external_access_token

/** Two processes of one service. */
async function twoProcesses(t: Test, more: NodeJS.ProcessEnv) {
  const { env } = await startProvider(t)
  const BASE_URL = 'https://sync.example.com/dir'
  const shared = { ...env, ...more, DATA_DIR: t.testdir(), BASE_URL, ENCRYPTION_KEY }
  return [await startService(t, shared), await startService(t, shared)] as const
}

function consents(t: Test, more: NodeJS.ProcessEnv): void {
  t.test('a directory id alone connects nothing, whether the directory is connected or not', async t => {
    const [service] = await twoProcesses(t, more)
    const id = await external(service)
    const path = `/api/scim/oauth/authorize?directoryId=${id}`
    for (const headers of [{}, { authorization: 'Api-Key wrong-key-wrong-key' }] as Record<
      string,
      string
    >[]) {
      const refused = await service.call('GET', path, undefined, headers)
      t.match([refused.status, refused.body], [401, { data: null, error: { message: /one-time link/ } }])
      t.equal(refused.headers.get('www-authenticate'), 'Api-Key realm="management"')
      t.equal(refused.headers.get('set-cookie'), null)
    }
    t.equal((await consent(service, id)).ended.status, 200)
    const before = await tokenOf(service, id)
    t.equal((await service.call('GET', path)).status, 401)
    t.equal(await tokenOf(service, id), before)
  })

  t.test('a link connects once, even when it is opened at one process and completed at another', async t => {
    const [one, two] = await twoProcesses(t, more)
    const id = await external(one)
    const link = await linkTo(one, id)
    t.match(link.href, /^https:\/\/sync\.example\.com\/dir\/api\/scim\/oauth\/authorize\?link=[\w-]{43}$/)
    const preview = await openLink(two, link)
    t.equal(preview.answer.status, 302, 'opening a link does not use it up, because mail programs open links')
    const begun = await openLink(two, link)
    const late = await openLink(one, link)
    const both = await Promise.all([
      comeBack(one, begun, { cookie: begun.cookie }),
      comeBack(two, late, { cookie: late.cookie }),
    ])
    t.same(
      both.map(answer => answer.status).sort(),
      [200, 403],
      'of two simultaneous callbacks exactly one connects',
    )
    const before = await tokenOf(two, id)
    t.match(before, /^access-canary/)
    for (const again of [begun, preview]) {
      const replayed = await comeBack(two, again, { cookie: again.cookie })
      t.match([replayed.status, replayed.body.error.message], [403, /already used/])
    }
    const reopened = await openLink(two, link)
    t.match(
      [reopened.answer.status, await reopened.answer.json()],
      [403, { error: { message: /already used/ } }],
    )
    t.equal(await tokenOf(one, id), before)
    if (more.MONGODB_URL) return
    for (const name of readdirSync(one.dataDir, { encoding: 'utf8' })) {
      const kept = readFileSync(join(one.dataDir, name)).toString('latin1')
      t.notMatch(kept, link.searchParams.get('link') ?? '', `${name} does not contain the link`)
    }
  })

  t.test('only the browser that began the consent can complete it', async t => {
    const [service] = await twoProcesses(t, more)
    const id = await external(service)
    const mine = await openLink(service, await linkTo(service, id))
    const other = await openLink(service, await linkTo(service, await external(service)))
    t.match(
      mine.setCookie,
      /^sluice_consent_[\w-]+=[\w-]{43}; Path=\/dir\/api\/scim\/oauth\/callback; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    )
    const [name = ''] = mine.cookie.split('=')
    for (const cookie of ['', other.cookie, `${name}=${other.cookie.split('=')[1]}`, `${name}=`]) {
      const refused = await comeBack(service, mine, { cookie })
      t.match([refused.status, refused.body.error.message], [403, /not the browser/], cookie)
    }
    t.equal(await tokenOf(service, id), '')
    const ended = await comeBack(service, mine, { cookie: `a=b; ${other.cookie}; ${mine.cookie}` })
    t.equal(ended.status, 200, 'the cookie of another consent in the same browser does no harm')
    t.match(ended.headers.get('set-cookie'), new RegExp(`^${name}=; .*Max-Age=0`))
  })

  t.test('a management key needs neither link nor cookie, and its consent works only once', async t => {
    const [service] = await twoProcesses(t, more)
    const id = await external(service)
    const path = `/api/scim/oauth/authorize?directoryId=${id}`
    const asked = await fetch(new URL(path, service.url), { redirect: 'manual', headers: { authorization } })
    const state = new URL(asked.headers.get('location') ?? '').searchParams.get('state') ?? ''
    t.equal((await comeBack(service, { state }, {})).status, 403)
    t.equal((await comeBack(service, { state }, { authorization })).status, 200)
    t.equal((await comeBack(service, { state }, { authorization })).status, 403)
  })

  t.test('a link ends when it expires, when it is deleted and when its directory is connected', async t => {
    const [service] = await twoProcesses(t, more)
    const id = await external(service)
    const made = await service.manage('POST', `/${id}/consent-link`, { lifetime_seconds: 60 })
    const left = Date.parse(made.body.data.expires_at) - Date.now()
    t.ok(made.status === 201 && left > 50_000 && left <= 60_000, String(left))
    const link = new URL(made.body.data.url)
    const other = await linkTo(service, id)
    const now = Date.now()
    const clock = t.capture(Date, 'now', () => now + 61_000)
    t.equal((await openLink(service, link)).answer.status, 403)
    clock.restore()
    const begun = await openLink(service, link)
    t.equal((await openLink(service, other)).answer.status, 302)
    t.equal((await comeBack(service, begun, { cookie: begun.cookie })).status, 200)
    t.equal((await openLink(service, other)).answer.status, 403, 'connecting through one link ends the other')

    const third = await linkTo(service, id)
    t.same((await service.manage('DELETE', `/${id}/consent-link`)).body, { data: null, error: null })
    t.equal((await openLink(service, third)).answer.status, 403)
    t.equal((await service.manage('DELETE', '/unknown/consent-link')).status, 404)
    for (const [directory, body, status, sentence] of [
      ['unknown', undefined, 404, /no directory/],
      [(await service.directory()).id, undefined, 400, /not pulled/],
      [id, { lifetime_seconds: 59 }, 400, /whole number from 60 to 604800/],
      [id, { lifetime_seconds: '3600' }, 400, /whole number/],
    ] as const) {
      const refused = await service.manage('POST', `/${directory}/consent-link`, body)
      t.match([refused.status, refused.body.error?.message], [status, sentence])
    }
    const noKey = await service.call('POST', `/api/v1/dsync/${id}/consent-link`)
    t.equal(noKey.status, 401)
  })
}

for (const store of ['SQLite', 'MongoDB']) {
  t.test(`Consents on ${store}`, async t => {
    const MONGODB_URL = store === 'MongoDB' ? await mongoUrl(t) : ''
    if (MONGODB_URL !== undefined) consents(t, { MONGODB_URL })
  })
}
