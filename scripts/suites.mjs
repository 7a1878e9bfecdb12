/**
 * `npm run suites`: third-party suites against a running gateway. schemathesis calls the management API, the SCIM
 * intake and the admin port for `--seconds` each; scim2-tester checks the intake. Exits with code 1 when a response
 * differs from the documents, or when the gateway fails.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { installPython } from './lib/python.mjs'
import { Failure, inProject, say, script } from './lib/run.mjs'
import { KEYS, startGateway } from './suites/gateway.mjs'
import { schemathesis, scim2Tester } from './suites/judges.mjs'
import { keysAreAskedFor } from './suites/keys.mjs'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } })

await script(async () => {
  const seconds = Number(values.seconds)
  const programs = installPython('suites', inProject('scripts', 'suites', 'requirements.txt'))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-suites-'))
  const gateway = await startGateway(folder)
  try {
    const { id, scim } = await newDirectory(gateway.url)
    const document = `${gateway.url}/api/v1/openapi.json`
    const judge = async (name, verdict) => {
      const { failed, told } = await verdict
      say(`${name}: ${told}`)
      if (failed) process.exitCode = 1
    }
    const asked = { seconds, document }
    const management = { ...asked, name: 'management', key: `Api-Key ${KEYS.management}`, paths: '^/api/v1/' }
    const parameters = { directoryId: id }
    const intake = {
      ...asked,
      name: 'scim',
      key: `Bearer ${scim.secret}`,
      paths: '^/api/scim/v2',
      parameters,
    }
    const admin = {
      ...asked,
      name: 'admin',
      // A response that never ends.
      except: '^/live/events$',
      key: `Bearer ${KEYS.admin}`,
      document: `${gateway.adminUrl}/openapi.json`,
    }
    await judge('scim2-tester', scim2Tester(programs, `${gateway.url}${scim.path}`, scim.secret))
    for (const each of [intake, management, admin]) {
      await judge(`schemathesis, ${each.name}`, schemathesis(programs, folder, each))
      await judge(`keys, ${each.name}`, keysAreAskedFor(each))
    }
    if (gateway.faults.length > 0) throw new Failure(`the gateway failed:\n${gateway.faults.join('\n')}`)
  } finally {
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

async function newDirectory(url) {
  const answer = await fetch(`${url}/api/v1/directory-sync`, {
    method: 'POST',
    headers: { authorization: `Api-Key ${KEYS.management}`, 'content-type': 'application/json' },
    body: JSON.stringify({ tenant: 'suites', product: 'suites' }),
  })
  if (answer.status !== 201) throw new Failure(`no directory could be made: ${await answer.text()}`)
  return (await answer.json()).data
}
