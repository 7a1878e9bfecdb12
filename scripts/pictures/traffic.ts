/** The shop's traffic: calm and even, until one project imports too fast. */
import { Agent, request } from 'node:http'
import type { Scope } from '../../test/helpers/scope.js'

/** Until the end of `t`; `storm` starts the burst. */
export function startTraffic(t: Scope, url: string): { storm(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 50 })
  const send = (project: string, method: string, path: string) => {
    const sent = request(url + path, { agent, method, headers: { host: `${project}.localhost` } })
    // Failures are ignored: the gateway itself reports them.
    sent.on('error', () => {}).on('response', response => response.resume())
    sent.end()
  }
  const every = (ms: number, work: () => void) => {
    const timer = setInterval(work, ms)
    t.teardown(() => clearInterval(timer))
  }
  t.teardown(() => agent.destroy())
  every(45, () => send('globex-production', 'GET', '/articles'))
  every(60, () => send('acme-production', 'GET', '/search'))
  every(130, () => send('initech-staging', 'GET', '/articles'))
  every(1100, () => send('acme-production', 'POST', '/imports'))
  every(900, () => send('new-shop', 'POST', '/signup'))
  every(9000, () => send('globex-production', 'POST', '/reports'))
  return { storm: () => every(70, () => send('acme-production', 'POST', '/imports')) }
}
