/** Access entries on the admin port: lists, sets, removes and logs them. */

import { unknownHostFault } from '../../config/checks/rules.js'
import { isCidr } from '../../config/formats.js'
import { reservedNameFault } from '../../config/words/reserved-names.js'
import type { AccessBody, Overrides } from '../admin/overrides.js'
import { placeOf } from '../compiled-rule.js'
import type { Configuration } from '../configured/load.js'
import { checkNamed } from '../configured/projects.js'
import { NotFound, Taken, Unnamed } from '../errors.js'
import { networkFault } from '../policy/access-entries.js'
import type { Log, Source } from '../types.js'
import { type RuntimeEntry, sourceOf } from './access-entry.js'
import { dropExpired } from './limit.js'
import { changesFor, logOverride, newOverride } from './override.js'
import type { OverrideChange, OverrideStore } from './store.js'
import { isPast, untilFault } from './until.js'

/** `loaded` returns the configuration in force. */
export function accessOverrides(
  store: Omit<OverrideStore, 'close'>,
  loaded: () => Configuration,
  log: Log,
): Overrides['access'] {
  return {
    async list() {
      await store.refresh()
      return { entries: [...entriesOfFiles(loaded()), ...[...store.contents.access.values()].map(shown)] }
    },

    async put(id, body, address) {
      const { why, by, mode = 'enforce', ...said } = body
      const fault = reservedNameFault(id) ?? faultOf(body, loaded())
      if (fault !== undefined) throw new Unnamed(fault)
      const owner = ownerOf(id, loaded())
      if (owner !== undefined)
        throw new Taken(`The name "${id}" is already used at ${placeOf(owner)}: choose another one.`)
      const override = newOverride('access', sentenceOf({ id, mode, ...said }), {
        ...body,
        from: address,
        set: id,
      })
      const entry: RuntimeEntry = {
        id,
        ...said,
        mode,
        why,
        by: override.by,
        at: override.at,
        override: override.id,
      }
      const isNew = await store.change(contents => ({
        changes: [
          ...dropExpired('access', id, contents),
          { collection: 'access', id, value: entry },
          ...changesFor(override, contents),
        ],
        result: !contents.access.has(id),
      }))
      logOverride(log, 'access-set', override, entry, 'An access entry was set by the admin API')
      return { created: isNew, entry: shown(entry) }
    },

    async remove(id, reason, address) {
      const override = newOverride('access', `Removed: access entry "${id}".`, { ...reason, from: address })
      const entry = await store.change(contents => {
        const there = contents.access.get(id)
        if (there === undefined) throw new NotFound(notSet(id, loaded()))
        const changes: OverrideChange[] = [{ collection: 'access', id }, ...changesFor(override, contents)]
        return { changes, result: there }
      })
      const said = { id, why: reason.why ?? null }
      logOverride(log, 'access-removed', override, said, 'An access entry was removed by the admin API')
      return { removed: shown(entry) }
    },
  }
}

function notSet(id: string, loaded: Configuration): string {
  const owner = ownerOf(id, loaded)
  const where = owner === undefined ? '' : ` The one of that name is written at ${placeOf(owner)}.`
  return `The admin API has set no entry "${id}".${where}`
}

/** `Denied: 203.0.113.0/24 ("scraper") until 2026-12-31.` */
function sentenceOf({
  id,
  action,
  mode,
  until,
  networks,
  projects = [],
}: Pick<RuntimeEntry, 'id'> & Omit<AccessBody, 'why'>): string {
  const done = { deny: ['Denied', 'Denied, report-only'], exempt: ['Exempted', 'Exempted, report-only'] }
  const whom = networks ?? projects.map(project => `project ${project}`)
  const more = whom.length > MOST_NAMED ? ` and ${whom.length - MOST_NAMED} more` : ''
  const ends = until === undefined ? '' : ` until ${until}`
  const what = done[action][mode === 'report-only' ? 1 : 0]
  return `${what}: ${whom.slice(0, MOST_NAMED).join(', ')}${more} ("${id}")${ends}.`
}

const MOST_NAMED = 3

/** What is wrong with an entry, as a sentence. @throws {NotFound} when it names an unknown project */
function faultOf(body: AccessBody, loaded: Configuration): string | undefined {
  const { networks, projects } = body
  if ((networks === undefined) === (projects === undefined)) return 'Name either networks or projects.'
  const fault = untilFault(body)
  if (fault !== undefined) return fault
  for (const project of projects ?? []) {
    const fault = unknownHostFault(project)
    if (fault !== undefined) return fault
    checkNamed(loaded, project)
  }
  for (const network of networks ?? []) {
    if (!isCidr(network)) return `"${network}" is not an address or network such as 203.0.113.0/24.`
    const fault = networkFault(network)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Where a file already uses the name: names must be unique because logs and metrics go by them. */
function ownerOf(id: string, { config, compiled }: Configuration): Source | undefined {
  const bucket = config.policies.find(
    ({ document }) => 'buckets' in document && Object.hasOwn(document.buckets, id),
  )
  if (bucket !== undefined)
    return { file: bucket.file, line: config.locate(bucket.file, ['buckets', id]).line }
  const rules = [...compiled.access.entries, ...compiled.policy.rules].map(({ rule }) => rule)
  return rules.find(rule => rule.id === id)?.source
}

function entriesOfFiles({ config, compiled }: Configuration) {
  const rules = new Map(compiled.access.entries.map(({ rule }) => [rule.id, rule]))
  return config.access.flatMap(({ document }) =>
    document.rules.map(({ id, networks, projects, action, mode, until, since }) => {
      const rule = rules.get(id)
      const written = {
        id,
        action,
        ...(networks && { networks }),
        ...(projects && { projects }),
        ...(until && { until }),
      }
      return {
        ...shown({ ...written, mode: rule?.mode ?? mode }),
        ...(rule?.forNow && { declared_mode: mode, mode_src: rule.forNow.src }),
        src: rule ? placeOf(rule.source) : null,
        since: since ?? null,
      }
    }),
  )
}

/** An entry as the admin port reports it. */
function shown(entry: Omit<RuntimeEntry, 'why' | 'by' | 'at' | 'override'> & Partial<RuntimeEntry>) {
  const { id, networks, projects, action, mode, until, why, by, at } = entry
  return {
    id,
    action,
    mode,
    ...(networks && { networks }),
    ...(projects && { projects }),
    until: until ?? null,
    /** False once it has expired. */
    in_force: !isPast(entry, Date.now()),
    src: sourceOf(id),
    since: at ?? null,
    why: why ?? null,
    by: by ?? null,
  }
}
