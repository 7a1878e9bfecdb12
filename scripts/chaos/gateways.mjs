/** Two built gateways on one Redis, as clients and operators see them. */
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { gatewayProcess, writeConfig } from '../../dist/test/helpers/gateway-process.js'
import { send } from '../../dist/test/helpers/http.js'
import { complaintsOf, waitedMs } from './process.mjs'
import { BURST, gatewayYaml, hostOf, POLICIES, projectsYaml } from './settings.mjs'

/** @returns `each` (the processes) and what both report together */
export async function startGateways(t, { url: redis, env, policies = POLICIES }, upstream) {
  const folder = writeConfig(t, gatewayYaml(redis, upstream), policies)
  writeFileSync(join(folder, 'projects.yaml'), projectsYaml())
  const each = await Promise.all([gatewayProcess(t, folder, env), gatewayProcess(t, folder, env)])
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const read = async ({ url }, project) => {
    const answer = await send(url, { agent, headers: { host: hostOf(project) } })
    return Number(answer.headers['x-ratelimit-remaining']?.split(',')[0])
  }
  return {
    each,
    /** Whether any of them now counts locally (`isAway`), and how many store calls have failed. */
    async state() {
      const pages = await Promise.all(each.map(({ adminUrl }) => send(`${adminUrl}/metrics`)))
      const failed = pages.map(({ body }) =>
        Number(/^sluice_store_errors_total\S* (\d+)/m.exec(body)?.[1] ?? 0),
      )
      return {
        isAway: pages.some(({ body }) => /^sluice_store_fallback_active 1/m.test(body)),
        failed: failed[0] + failed[1],
      }
    },
    /** How long they and this process have waited for a core so far, in milliseconds. */
    waitedMs: () => waitedMs(each),
    /** Whether each sees what the other one counts, tried with a project that has had no requests yet. */
    async countTogether(project) {
      const left = []
      for (const gateway of each) left.push(await read(gateway, project))
      return left[0] === BURST - 1 && left[1] === BURST - 2
    },
    /** What must never be logged: warnings from Node, and errors. */
    complaints: () => each.flatMap(complaintsOf),
  }
}
