/** Kong's consumers: projects with API keys. A consumer with a limit of its own gets a plan of its own. */
import { createHash } from 'node:crypto'
import { algorithmOf, type KongPlugins, reference } from './kong-plugins.js'
import { bucketQuota } from './kong-quota.js'
import { ANY_PLAN, type Migration } from './migration.js'
import type { Section } from './source.js'

/** The plan of a consumer: its limit holds on every route, so the plan has one bucket for all of them. */
export interface OwnPlan {
  /** The kind of plugin that the plan's limit replaces. */
  readonly kind: string
  readonly quota: object
}

/** Adds the projects, and returns the plans of consumers with limits of their own. */
export function importConsumers(
  consumers: readonly Section[],
  scoped: readonly Section[],
  plugins: KongPlugins,
  into: Migration,
): Map<string, OwnPlan> {
  const [header = 'apikey'] = plugins.keyAuth?.section('config').texts('key_names') ?? []
  const plans = new Map<string, OwnPlan>()
  for (const consumer of consumers) {
    const known = ['username', 'keyauth_credentials', 'plugins', 'tags']
    consumer.others(known, into, 'A project has hosts, paths and API keys.')
    const username = consumer.text('username') ?? ''
    const id = username.replace(/[^A-Za-z0-9._:-]+/g, '-').slice(0, 128)
    if (id === '' || !into.isNew(`project ${id}`)) {
      into.leftOut(consumer.at(), `the consumer "${username}". A project has an id of its own.`)
      continue
    }
    const own = [
      ...plugins.limitersOf(consumer.list('plugins')),
      ...scoped.filter(plugin => reference(plugin, 'consumer') === username),
    ]
    const plan = own.length > 0 ? planOf(id, own, plugins, plans, into) : ANY_PLAN
    const apiKeyHashes = consumer.list('keyauth_credentials').flatMap(one => hashOf(one, into))
    if (apiKeyHashes.length > 0 && into.isSound('api-key', { header }, consumer.at())) {
      into.identifyBy({ plugin: 'api-key', header })
    }
    into.project({ id, plan, ...(apiKeyHashes.length > 0 && { apiKeyHashes }) }, consumer.at())
  }
  if (plugins.keyAuth !== undefined) {
    into.changed(
      plugins.keyAuth.at(),
      'requests without a key are counted by host; "unknownProject: reject" refuses them.',
    )
  }
  return plans
}

function planOf(
  id: string,
  own: readonly Section[],
  plugins: KongPlugins,
  plans: Map<string, OwnPlan>,
  into: Migration,
): string {
  const [plugin, ...more] = own as [Section, ...Section[]]
  for (const one of more) {
    plugins.windowsOf(one)
    into.leftOut(one.at(), 'a second limit of this consumer.')
  }
  const windows = plugins.windowsOf(plugin)
  if (windows.length === 0) return ANY_PLAN
  if ('route' in plugin.node || 'service' in plugin.node) {
    into.leftOut(plugin.at(), `a limit of ${id} for some routes alone.`)
    return ANY_PLAN
  }
  const plan = id
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9._-]/g, '-')
    .replace(/^-+/, '')
    .slice(0, 64)
  const kind = plugin.text('name') ?? ''
  plans.set(plan, { kind, quota: bucketQuota(windows, algorithmOf(plugin)) })
  return plan
}

/** A number is not accepted as a key: YAML has already changed values such as 0123 or 1e5. */
function hashOf(credential: Section, into: Migration): string[] {
  const { key } = credential.node
  if (typeof key === 'number')
    into.leftOut(credential.at('key'), 'a key that is a number. Write it in quotes.')
  else if (typeof key !== 'string' || key.trim() === '' || /^\{vault:|^\$\{/.test(key)) {
    into.leftOut(credential.at(), 'a key that is not in the file.')
  } else {
    const hash = createHash('sha256').update(key).digest('hex')
    if (into.isNew(`key ${hash}`)) return [hash]
    into.leftOut(credential.at('key'), 'a key that is already in the file. A key identifies one consumer.')
  }
  return []
}
