/** docs/tools.md: every command does what its section shows. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inProject } from '../helpers/root.js'
import { copyShipped } from './servers.js'
import { type AskedRequest, DAY, HOUR, logOf } from './traffic.js'
import { type PageWalk, walk } from './walk.js'

const API_KEY = 'a-key-of-the-management-api'

/** Copies the shipped configuration to `config`, other configurations beside it, and the documents to import. */
function prepare(walk: PageWalk): void {
  const { folder } = walk
  const fixture = (...parts: string[]) => inProject('test', 'fixtures', ...parts)
  copyShipped(walk)
  cpSync(fixture('lint'), join(folder, 'lint'), { recursive: true })
  for (const name of ['shop.yaml', 'tickets.json']) cpSync(fixture('openapi', name), join(folder, name))
}

/** A copy of `config` with parts of files replaced. */
function copy(
  folder: string,
  name: string,
  changes: readonly (readonly [string, string | RegExp, string])[],
) {
  cpSync(join(folder, 'config'), join(folder, name), { recursive: true })
  for (const [file, from, to] of changes) {
    const path = join(folder, name, 'policies', file)
    writeFileSync(path, readFileSync(path, 'utf8').replace(from, to))
  }
}

const LIMITS = 'project-limits.yaml'
const FLOODS = 'volumetric.yaml'

/**
 * Nine days: an ordinary request every twenty minutes, six floods of 55 recoveries, and a developer who asks too fast
 * once.
 */
function nineDays(): AskedRequest[] {
  const first = Date.UTC(2026, 0, 5)
  const asks = [
    'GET /sessions/whoami',
    'POST /self-service/registration',
    'GET /files',
    'POST /self-service/recovery',
  ]
  const ordinary = Array.from({ length: 9 * 72 }, (_, i) => {
    const [method = '', path = ''] = (asks[i % 4] as string).split(' ')
    return { at: first + i * (HOUR / 3), from: `203.0.113.${i % 250}`, host: 'acme.localhost', method, path }
  })
  const floods = Array.from({ length: 6 * 55 }, (_, i) => ({
    ...{
      at: first + Math.floor(i / 55) * 1.5 * DAY + 20 * HOUR + 1000 + (i % 55) * 700,
      from: '198.51.100.7',
    },
    ...{ host: 'acme.localhost', method: 'POST', path: '/self-service/recovery' },
  }))
  const developer = Array.from({ length: 9 }, (_, i) => ({
    ...{ at: first + 3 * DAY + 5000 + i, from: '192.0.2.1', host: 'dev.localhost' },
    ...{ method: 'GET', path: '/files' },
  }))
  return [...ordinary, ...floods, ...developer].sort((a, b) => a.at - b.at)
}

/** Starts the shipped gateway; one project sends three requests, and a developer eight at once. */
async function serveAsked({ port, run, serveGateway }: PageWalk): Promise<void> {
  await serveGateway('sluice serve --config config')
  await run(`ask() { curl -s -o /dev/null -H "Host: $1" http://127.0.0.1:${port(8080)}/files; }
    for i in 1 2 3; do ask acme.localhost; done; (for i in 1 2 3 4 5 6 7 8; do ask dev.localhost & done; wait)`)
}

/**
 * Creates three directories whose secrets are encrypted with the old key, and starts a gateway that knows both keys.
 */
async function serveOldKey({ port, run, serveGateway }: PageWalk): Promise<void> {
  await run('OLD=$(openssl rand -base64 32) NEW=$(openssl rand -base64 32)')
  const gateway = 'sluice serve --config config'
  await serveGateway(`ENCRYPTION_KEY="$OLD" ${gateway}`)
  await run(`for tenant in a b c; do
    curl -s http://127.0.0.1:${port(8080)}/api/v1/directory-sync -H 'Authorization: Api-Key ${API_KEY}' \\
      -H 'Content-Type: application/json' -d "{\\"tenant\\":\\"$tenant\\",\\"product\\":\\"crm\\"}"; done`)
  await serveGateway(`ENCRYPTION_KEY="$NEW,$OLD" ${gateway}`)
}

t.test('docs/tools.md: every command does what its section shows', async t => {
  await walk(t, 'docs/tools.md', {
    env: { API_KEYS: API_KEY, DATA_DIR: 'data' },
    numbersVary: ['sluice top', 'sluice counters'],
    before: {
      'check --config ./config': prepare,
      'explain GET /admin/identities --project developer --live': ({ serveGateway }) =>
        serveGateway('sluice serve --config config'),
      'diff ./config': ({ folder }) =>
        copy(folder, 'config-next', [
          [LIMITS, /scim: { burst: 10, sustained: 300 }/g, 'scim: { burst: 20, sustained: 300 }'],
          [LIMITS, ', /api/scim/**', ''],
          ['in-flight.yaml', /(session-delete[\s\S]*?)report-only/, '$1enforce'],
          [
            FLOODS,
            'quota: { requests: 100, per: 10s }\n    blockFor: 60s',
            'quota: { requests: 120, per: 10s }\n    blockFor: 90s',
          ],
        ]),
      'sluice top --once': serveAsked,
      // A terminal wide enough for the tables.
      'sluice mode catch-all': ({ run }) => run('export COLUMNS=140'),
      async 'encryption rotate'(walk) {
        await walk.run('unset COLUMNS')
        await serveOldKey(walk)
      },
      'sluice report gateway.log': async ({ folder }) =>
        writeFileSync(join(folder, 'gateway.log'), await logOf(t, join(folder, 'config'), nineDays())),
      'replay gateway.log': ({ folder }) =>
        copy(folder, 'policies-new', [[FLOODS, /(recovery-flood[\s\S]*?)report-only/, '$1enforce']]),
      'replay app.json': ({ folder }) =>
        writeFileSync(
          join(folder, 'app.json'),
          '{"ts":"2026-01-05T00:00:00Z","req":{"verb":"GET","url":"/files","host":"acme.localhost"}}\n',
        ),
    },
  })
})
