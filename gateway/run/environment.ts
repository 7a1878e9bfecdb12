/** The embedded services, and what of the environment the gateway could not start with. */
import { type Config, problemAt } from '../../config/load.js'
import type { Path, Problem } from '../../config/problem.js'
import { targetRules } from '../../webhooks/target.js'
import { logLevel } from './process.js'
import { secretFault } from './secret.js'

/** Opens no ports, data folder or database. At most one problem for each place. */
export async function environmentProblems(config: Config, env: NodeJS.ProcessEnv): Promise<Problem[]> {
  const report = (path: Path, message: string) => problemAt(config, config.gatewayFile, path, message)
  const embedded = Object.entries(config.gateway.upstreams).flatMap(([name, upstream]) =>
    'embedded' in upstream ? [{ name, service: upstream.embedded }] : [],
  )
  const own = [
    parserFault(env),
    faultOf(() => logLevel(env)),
    faultOf(() => targetRules(env)),
    secretFault(env, embedded.length > 0),
  ].filter(fault => fault !== undefined)
  const services = embedded.map(async ({ name, service }) => {
    const fault = await settingsFault(service as keyof typeof EMBEDDED, env)
    // Both read ENCRYPTION_KEY, and what is wrong with it is said once.
    if (fault === undefined || own.some(one => fault.includes(one.replace(/\.$/, '')))) return []
    return [report(['upstreams', name, 'embedded'], cannotStart(service, fault))]
  })
  return [...own.map(fault => report([], fault)), ...(await Promise.all(services)).flat()]
}

/** A lenient parser would read messages differently from the upstream, which allows request smuggling. */
function parserFault(env: NodeJS.ProcessEnv): string | undefined {
  const flags = [...process.execArgv, env.NODE_OPTIONS ?? ''].join(' ')
  if (!flags.includes('--insecure-http-parser')) return undefined
  return 'Sluice does not run with --insecure-http-parser: it would open the door to request smuggling.'
}

/** The message of the error that `read` throws. */
function faultOf(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

async function settingsFault(
  service: keyof typeof EMBEDDED,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const module = await EMBEDDED[service]()
  try {
    if ('checkSettings' in module) await module.checkSettings(env)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

export function cannotStart(service: string, message: string): string {
  return `The ${service} service cannot start: ${message}`
}

/** The modules of the embedded services, loaded only when a configuration uses them. */
export const EMBEDDED = {
  directory: () => import('../../services/directory/index.js'),
  identity: () => import('../../services/identity/index.js'),
  welcome: () => import('../../services/welcome/index.js'),
}
