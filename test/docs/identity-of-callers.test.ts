/** docs/identity-of-callers.md: its commands, and its recipes with tokens such as each issuer makes. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { type Key, newKey, startIssuer, token } from '../gateway/identify/jwt/issuer.js'
import { canMakeCertificates } from '../helpers/certificates.js'
import { serveProcess } from '../helpers/gateway-process.js'
import { send, startApp } from '../helpers/http.js'
import { temporaryFolder } from '../helpers/scope.js'
import { waitUntil } from '../helpers/wait.js'
import { filesOf } from './blocks.js'
import { type PageWalk, walk } from './walk.js'

const PAGE = 'docs/identity-of-callers.md'

/** An upstream that says who it was told is calling. */
function serveApp({ port, serve }: PageWalk): Promise<void> {
  const app = `require('http').createServer((q, s) => s.end(q.headers['x-sluice-project'] + ', ' + q.headers['x-sluice-plan'] + '\\n')).listen(${port(3000)})`
  return serve(`node -e "${app}"`, [port(3000)])
}

t.test('keys, certificates and the PROXY protocol work as the page shows', async t => {
  if (!canMakeCertificates(t)) return
  /** A gateway looks at the file of keys once in a second; asked more often, it would take the keys for guesses. */
  const answered = (key: string, status: number) => async (walk: PageWalk) => {
    const url = `http://127.0.0.1:${walk.port(8080)}/orders/1`
    const ask = `sleep 0.3; curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Api-Key ${key}" ${url}`
    await waitUntil('the keys', async () => (await walk.run(ask)).out === String(status))
  }
  await walk(t, 'docs/identity-of-callers.md', {
    before: {
      'serve --config partners': serveApp,
      'Api-Key $NEW': answered('$NEW', 200),
      "'%{http_code}\\n' -H": answered('$KEY', 401),
    },
  })
})

interface Recipe {
  readonly issuer: string
  /** What such an issuer puts into the tokens of its clients, besides issuer and times. */
  readonly claims: Readonly<Record<string, unknown>>
  readonly header: object
  /** Claims that differ, and what becomes of a request with such a token. */
  readonly answers: readonly (readonly [claims: Record<string, unknown>, answer: string])[]
}

const ENTRA = 'https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0'
const POOL = 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE'
const AUTH0 = 'https://example.eu.auth0.com/'

const RECIPES: Readonly<Record<string, Recipe>> = {
  auth0: {
    issuer: AUTH0,
    header: { typ: 'JWT' },
    claims: {
      aud: 'https://api.example.com',
      sub: 'newClient@clients',
      azp: 'newClient',
      gty: 'client-credentials',
      scope: 'read:orders write:orders',
    },
    answers: [
      [{}, 'newClient, free'],
      [{ 'https://example.com/plan': 'pro' }, 'newClient, pro'],
      [{ azp: 'K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja' }, 'K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja, pro'],
      [{ aud: ['https://api.example.com', `${AUTH0}userinfo`] }, 'newClient, free'],
      [{ aud: `${AUTH0}userinfo` }, '401'],
      [{ scope: 'openid' }, '403'],
    ],
  },
  keycloak: {
    issuer: 'https://id.example.com/realms/shop',
    header: { typ: 'JWT' },
    claims: {
      aud: ['orders-api', 'account'],
      typ: 'Bearer',
      azp: 'shop-web',
      realm_access: { roles: ['offline_access'] },
      resource_access: { 'orders-api': { roles: ['read-orders'] }, account: { roles: ['view-profile'] } },
      scope: 'profile email',
      customer: { plan: 'pro' },
    },
    answers: [
      [{}, 'shop-web, pro'],
      [{ resource_access: {}, scope: 'profile read-orders' }, 'shop-web, pro'],
      [{ customer: undefined }, 'shop-web, free'],
      [{ resource_access: { account: { roles: ['read-orders'] } } }, '403'],
      [{ aud: 'account' }, '401'],
      [{ aud: undefined }, '401'],
    ],
  },
  cognito: {
    issuer: POOL,
    header: { typ: undefined },
    claims: {
      sub: '1example23456789',
      token_use: 'access',
      scope: 'https://api.example.com/orders.read',
      version: 2,
      client_id: '1example23456789',
    },
    answers: [
      [{}, '1example23456789, pro'],
      [{ client_id: '9example87654321' }, '9example87654321, free'],
      [{ client_id: 'anotherClient' }, '401'],
      [{ client_id: undefined, token_use: 'id', aud: '1example23456789' }, '401'],
      [{ scope: 'https://api.example.com/orders.write' }, '403'],
    ],
  },
  entra: {
    issuer: ENTRA,
    header: { typ: 'JWT' },
    claims: {
      aud: '00001111-aaaa-2222-bbbb-3333cccc4444',
      azp: '22223333-cccc-4444-dddd-5555eeee6666',
      azpacr: '1',
      oid: '33334444-dddd-5555-eeee-6666ffff7777',
      roles: ['Orders.Read'],
      tid: 'aaaabbbb-0000-cccc-1111-dddd2222eeee',
      ver: '2.0',
    },
    answers: [
      [{}, '22223333-cccc-4444-dddd-5555eeee6666, pro'],
      [{ azp: '44445555-eeee-6666-ffff-7777aaaa8888' }, '44445555-eeee-6666-ffff-7777aaaa8888, free'],
      [{ roles: undefined, scp: 'User.Read Orders.Read' }, '22223333-cccc-4444-dddd-5555eeee6666, pro'],
      [{ roles: undefined }, '403'],
      [{ aud: 'api://00001111-aaaa-2222-bbbb-3333cccc4444' }, '401'],
      [{ iss: 'https://sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/' }, '401'],
    ],
  },
}

const key = await newKey('one', 'RS256')

/** A gateway with the files of a recipe as the page has them, except for addresses of this machine. */
async function serve(t: Test, name: string, keys: readonly Key[]): Promise<string> {
  const upstream = await startApp(t, ({ headers }, res) =>
    res.end(`${headers['x-sluice-project']}, ${headers['x-sluice-plan']}`),
  )
  const issuer = await startIssuer(t, keys)
  const folder = temporaryFolder(t, 'recipe')
  const jwks = /^ +jwks: "https:.*"$/m
  for (const { file, text } of filesOf(PAGE)) {
    if (file === `${name}/gateway.yaml`) t.match(text, jwks)
    const local = text
      .replace('http://127.0.0.1:3000', upstream)
      .replace(/port: 808\d/g, 'port: 0')
      .replace(jwks, `    jwks: "${issuer.url}"\n    allowPrivate: true`)
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), local)
  }
  return (await serveProcess(t, ['--config', join(folder, name)])).url
}

for (const [name, { issuer, header, claims, answers }] of Object.entries(RECIPES)) {
  t.test(`the recipe for ${name} admits the tokens that such an issuer makes`, async t => {
    const url = await serve(t, name, [key])
    const get = async (bearer: string) => {
      const { status, body } = await send(`${url}/orders/1`, {
        headers: { authorization: `Bearer ${bearer}` },
      })
      return status === 200 ? body : String(status)
    }
    for (const [other, answer] of answers) {
      const { iss = issuer, ...all } = { ...claims, ...other } as { iss?: string }
      const made = await token(key, {
        claims: { azp: undefined, ...all },
        header,
        issuer: iss,
        audience: null,
      })
      t.equal(await get(made), answer, JSON.stringify(other))
    }
    const stranger = await newKey('one', 'RS256')
    t.equal(await get(await token(stranger, { claims, header, issuer, audience: null })), '401')
    t.equal((await send(`${url}/orders/1`)).status, 401)
  })
}
