/**
 * `npm run suites`: third-party suites against a running gateway. schemathesis calls the management API, the SCIM
 * intake and the admin port for `--seconds` each; scim2-tester checks the intake. Exits with code 1 when a response
 * differs from the documents, or when the gateway fails.
 */
import { parseArgs } from 'node:util'
import { isError, serveProcess, writeConfig } from '../test/helpers/gateway-process.js'
import { type Scope, scoped, temporaryFolder } from '../test/helpers/scope.js'
import { installPython } from './lib/python.mjs'
import { Failure, inProject, say, script } from './lib/run.mjs'
import { keysAreAskedFor } from './suites/keys.js'
import { type Asked, schemathesis, scim2Tester, type Verdict } from './suites/suites.js'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } })
/** Keys of this gateway only. */
const KEYS = { management: 'suites-management-key-0123', admin: 'suites-admin-key-0123' }

await script(() =>
  scoped(async t => {
    const seconds = Number(values.seconds)
    const programs = installPython('suites', inProject('scripts', 'suites', 'requirements.txt'))
    const folder = temporaryFolder(t, 'suites')
    const gateway = await startGateway(t)
    const { id, scim } = await newDirectory(gateway.url)
    const document = `${gateway.url}/api/v1/openapi.json`
    const judge = async (name: string, verdict: Promise<Verdict>) => {
      const { failed, summary } = await verdict
      say(`${name}: ${summary}`)
      if (failed) process.exitCode = 1
    }
    const asked: Asked[] = [
      {
        ...{ name: 'scim', seconds, document, key: `Bearer ${scim.secret}` },
        ...{ paths: '^/api/scim/v2', parameters: { directoryId: id } },
      },
      { name: 'management', seconds, document, key: `Api-Key ${KEYS.management}`, paths: '^/api/v1/' },
      {
        ...{
          name: 'admin',
          seconds,
          document: `${gateway.adminUrl}/openapi.json`,
          key: `Bearer ${KEYS.admin}`,
        },
        // A response that never ends.
        except: '^/live/events$',
      },
    ]
    await judge('scim2-tester', scim2Tester(programs, `${gateway.url}${scim.path}`, scim.secret))
    for (const each of asked) {
      await judge(`schemathesis, ${each.name}`, schemathesis(programs, folder, each))
      await judge(`keys, ${each.name}`, keysAreAskedFor(each))
    }
    if (gateway.faults.length > 0) throw new Failure(`the gateway failed:\n${gateway.faults.join('\n')}`)
  }),
)

/** A gateway with the embedded directory and no limits, so that the suites test the API itself. */
async function startGateway(t: Scope) {
  const settings = {
    admin: { key: KEYS.admin },
    upstreams: { directory: { embedded: 'directory' } },
    routes: [{ path: '/api/**', upstream: 'directory' }],
    identify: ['host'],
    unknownProject: 'enterprise',
  }
  const folder = writeConfig(t, settings, {}, { projects: [] })
  // Nothing is ever connected or delivered: no server listens on this port.
  const nowhere = 'http://127.0.0.1:9'
  const env = {
    ...{ DATA_DIR: folder, API_KEYS: KEYS.management },
    ...{ EXTERNAL_CLIENT_ID: 'suites', EXTERNAL_CLIENT_SECRET: 'suites' },
    ...{ EXTERNAL_TOKEN_URL: nowhere, EXTERNAL_API_URL: nowhere },
  }
  const faults: string[] = []
  const gateway = await serveProcess(t, ['--config', folder], env, {
    onLine(line) {
      if (isError(line)) faults.push(line)
    },
  })
  return { ...gateway, faults }
}

interface Directory {
  readonly id: string
  readonly scim: { readonly path: string; readonly secret: string }
}

async function newDirectory(url: string): Promise<Directory> {
  const answer = await fetch(`${url}/api/v1/directory-sync`, {
    method: 'POST',
    headers: { authorization: `Api-Key ${KEYS.management}`, 'content-type': 'application/json' },
    body: JSON.stringify({ tenant: 'suites', product: 'suites' }),
  })
  if (answer.status !== 201) throw new Failure(`no directory could be made: ${await answer.text()}`)
  return ((await answer.json()) as { data: Directory }).data
}
