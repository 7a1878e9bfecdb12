/** What the admin port does about access entries: lists, sets and removes them, and leaves a line in the log. */
import { isCidr, isDayOrInstant } from '../../../config/formats.js'
import { unknownHostFault } from '../../../config/project-names.js'
import type { AccessBody, AccessDesk } from '../../admin/access.js'
import { NotFound, Taken, Unnamed } from '../../admin/refusals.js'
import { projectOf } from '../../explain/policy.js'
import { networkFault } from '../../policy/access-entries.js'
import type { Log, Source } from '../../types.js'
import type { Loaded } from '../load.js'
import { isPast, MOST_ENTRIES, type RuntimeEntry, sourceOf } from './entry.js'
import type { Kept } from './kept.js'

/** `loaded` is what is in force. */
export function accessDesk(kept: Kept, loaded: () => Loaded, log: Log): AccessDesk {
  return {
    list: () => ({ entries: [...entriesOfFiles(loaded()), ...[...kept.entries.values()].map(shown)] }),

    async put(id, body, address) {
      const { why, by = address, mode = 'enforce', ...said } = body
      const fault = faultOf(body, loaded())
      if (fault !== undefined) throw new Unnamed(fault)
      const owner = ownerOf(id, loaded())
      if (owner !== undefined)
        throw new Taken(`The name "${id}" stands at ${placeOf(owner)}: take another one.`)
      const past = [...kept.entries.values()].filter(one => isPast(one, Date.now())).map(one => one.id)
      const isNew = !kept.entries.has(id)
      if (isNew && kept.entries.size - past.length >= MOST_ENTRIES) {
        throw new Taken(
          `There are ${MOST_ENTRIES} entries, and there may be no more: remove some, or write them into a policy file.`,
        )
      }
      const entry: RuntimeEntry = { id, ...said, mode, why, by, at: new Date().toISOString() }
      await kept.change(
        entry,
        past.filter(one => one !== id),
      )
      // A warning, so that it is written whatever is left out.
      log.warn({ audit: 'access-set', ...entry, from: address }, 'An access entry was set by the admin API')
      return { created: isNew, entry: shown(entry) }
    },

    async remove(id, { why, by }, address) {
      const entry = kept.entries.get(id)
      if (entry === undefined) {
        const owner = ownerOf(id, loaded())
        const where = owner === undefined ? '' : ` The one of that name stands at ${placeOf(owner)}.`
        throw new NotFound(`The admin API has set no entry "${id}".${where}`)
      }
      await kept.change(undefined, [id])
      log.warn(
        { audit: 'access-removed', id, why: why ?? null, by: by ?? address, from: address },
        'An access entry was removed by the admin API',
      )
      return { removed: shown(entry) }
    },
  }
}

/** What is wrong with an entry, as a sentence. @throws {NotFound} when it names a project that there is not */
function faultOf({ networks, projects, until }: AccessBody, loaded: Loaded): string | undefined {
  if ((networks === undefined) === (projects === undefined)) return 'Name either networks or projects.'
  if (until !== undefined && !isDayOrInstant(until)) {
    return `"until" must be a day such as 2026-12-31 or a moment such as 2026-12-31T18:00:00Z, but it is "${until}".`
  }
  if (isPast({ ...(until !== undefined && { until }) }, Date.now())) return `"until" is over: ${until}.`
  for (const project of projects ?? []) {
    const fault = unknownHostFault(project)
    if (fault !== undefined) return fault
    projectOf(loaded, project)
  }
  for (const network of networks ?? []) {
    if (!isCidr(network)) return `"${network}" is no address or network such as 203.0.113.0/24.`
    const fault = networkFault(network)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Where a file has that name: logs and metrics go by it. */
function ownerOf(id: string, { config, compiled }: Loaded): Source | undefined {
  const bucket = config.policies.find(
    ({ document }) => 'buckets' in document && Object.hasOwn(document.buckets, id),
  )
  if (bucket !== undefined)
    return { file: bucket.file, line: config.locate(bucket.file, ['buckets', id]).line }
  const rules = [...compiled.access.entries, ...compiled.policy.rules].map(({ rule }) => rule)
  return rules.find(rule => rule.id === id)?.source
}

function entriesOfFiles({ config, compiled }: Loaded) {
  const sources = new Map(compiled.access.entries.map(({ rule }) => [rule.id, placeOf(rule.source)]))
  return config.access.flatMap(({ document }) =>
    document.rules.map(({ id, networks, projects, action, mode, until, since }) => ({
      ...shown({
        id,
        action,
        mode,
        ...(networks && { networks }),
        ...(projects && { projects }),
        ...(until && { until }),
      }),
      src: sources.get(id) ?? null,
      since: since ?? null,
    })),
  )
}

/** As the port tells of it. */
function shown(entry: Omit<RuntimeEntry, 'why' | 'by' | 'at'> & Partial<RuntimeEntry>) {
  const { id, networks, projects, action, mode, until, why, by, at } = entry
  return {
    id,
    action,
    mode,
    ...(networks && { networks }),
    ...(projects && { projects }),
    until: until ?? null,
    /** False once its time is over. */
    in_force: !isPast(entry, Date.now()),
    src: sourceOf(id),
    since: at ?? null,
    why: why ?? null,
    by: by ?? null,
  }
}

function placeOf({ file, line }: Source): string {
  return `${file}:${line}`
}
