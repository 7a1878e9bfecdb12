/** Negotiated limits on the admin port: sets, undoes and reports the quotas of single projects. */
import {
  quotaWords,
  readNegotiatedLimit,
  type WrittenQuota,
  writtenQuota,
} from '../../config/negotiated-limit.js'
import type { QuotaBody, Quotas } from '../admin/quotas.js'
import type { Configuration } from '../configured/load.js'
import { projectsNamed } from '../configured/projects.js'
import { NotFound, Unnamed } from '../errors.js'
import type { QuotaForNow } from '../policy/quotas.js'
import type { Log } from '../types.js'
import { dropExpired } from './limit.js'
import { changesFor, logOverride, newOverride } from './override.js'
import { checkQuota, nameFault, quotaFault } from './quota-fault.js'
import { type QuotaName, quotaId, quotaPath } from './quota-id.js'
import type { OverrideChange, OverrideStore } from './store.js'
import { type Ending, isPast, untilFault } from './until.js'

/** A negotiated limit, as it is stored. */
export interface StoredQuota extends QuotaName, Ending {
  /** As projects.yaml would have it. */
  readonly quota: WrittenQuota
  readonly why: string
  readonly by: string
  /** ISO 8601. */
  readonly at: string
  /** Id of the override that set it. */
  readonly override: string
}

const compiled = new WeakMap<StoredQuota, QuotaForNow>()

/** The limit for the policy: the same object as long as nothing else is set in its place. */
export function quotaForNow(stored: StoredQuota): QuotaForNow {
  const known = compiled.get(stored)
  if (known !== undefined) return known
  const { project, bucket, quota: written } = stored
  const read = readNegotiatedLimit(written)
  if ('fault' in read) throw new TypeError(read.fault)
  const source = { file: quotaPath(quotaId(stored)), line: undefined }
  const limit = { project, bucket, quota: read.quota, source }
  compiled.set(stored, limit)
  return limit
}

/** `loaded` returns the configuration as the files say it. */
export function quotaOverrides(
  store: Omit<OverrideStore, 'close'>,
  loaded: () => Configuration,
  log: Log,
): Quotas {
  return {
    async list() {
      await store.refresh()
      return { overrides: reportQuotas([...store.contents.quotas.values()], loaded()) }
    },

    async of(project) {
      await store.refresh()
      const own = [...store.contents.quotas.values()].filter(one => one.project === project)
      const [named] = projectsNamed(loaded(), project)
      if (named === undefined && own.length === 0)
        throw new NotFound(`There is no project "${project}" in this configuration.`)
      return {
        project,
        listed: isListed(project, loaded()),
        overrides: [...writtenFor(project, loaded()), ...reportQuotas(own, loaded())],
      }
    },

    async put(name, body, from) {
      const { why, by, until, unlimited, ...keys } = body
      const quota = quotaIn(unlimited, keys)
      const fault = untilFault(body)
      if (fault !== undefined) throw new Unnamed(fault)
      const id = quotaId(name)
      const ends = until === undefined ? '' : ` until ${until}`
      const what = `Negotiated: "${name.bucket}" for project ${name.project}, ${quotaWords(quota)}${ends}.`
      const override = newOverride('quota', what, { ...body, from, set: id })
      const value: StoredQuota = {
        ...{ project: name.project, bucket: name.bucket, quota },
        ...(until !== undefined && { until }),
        ...{ why, by: override.by, at: override.at, override: override.id },
      }
      const created = await store.change(contents => {
        checkQuota(quotaForNow(value), loaded())
        const changes: OverrideChange[] = [
          ...dropExpired('quotas', id, contents),
          { collection: 'quotas', id, value },
          ...changesFor(override, contents),
        ]
        return { changes, result: !contents.quotas.has(id) }
      })
      logOverride(log, 'quota-set', override, value, 'A negotiated limit was set by the admin API')
      return { created, entry: reportQuota(value, loaded()) }
    },

    async remove(name, reason, from) {
      const what = `Undone: "${name.bucket}" for project ${name.project} is as the files say.`
      const override = newOverride('quota', what, { ...reason, from })
      const removed = await store.change(contents => {
        const id = quotaId(name)
        const value = contents.quotas.get(id)
        if (value === undefined) throw new NotFound(notSet(name, loaded()))
        const changes: OverrideChange[] = [{ collection: 'quotas', id }, ...changesFor(override, contents)]
        return { changes, result: value }
      })
      const said = { project: name.project, bucket: name.bucket, why: reason.why ?? null }
      logOverride(log, 'quota-removed', override, said, 'A negotiated limit was undone by the admin API')
      return { removed: reportQuota(removed, loaded()) }
    },
  }
}

/** The quota that a body gives. @throws {Unnamed} when it is not valid */
function quotaIn(unlimited: unknown, keys: Partial<QuotaBody>): WrittenQuota {
  const given = Object.keys(keys)
  if (unlimited === undefined && given.length === 0)
    throw new Unnamed('Give the quota: burst, sustained or windows, or "unlimited": true.')
  if (unlimited !== undefined) {
    if (unlimited !== true) throw new Unnamed('"unlimited" can only be true: leave it out for a quota.')
    if (given.length > 0) throw new Unnamed(`What is unlimited has no quota: remove ${given.join(', ')}.`)
    return 'unlimited'
  }
  const read = readNegotiatedLimit(keys)
  if ('fault' in read) throw new Unnamed(read.fault)
  return keys
}

function notSet(name: QuotaName, loaded: Configuration): string {
  const { project, bucket } = name
  const unknown = nameFault(name, loaded)
  if (unknown !== undefined) return unknown
  const written = writtenFor(project, loaded).find(one => one.bucket === bucket)
  const where = written === undefined ? '' : ` The one of the files is written at ${written.src}.`
  return `The admin API has set no limit of project "${project}" for "${bucket}".${where}`
}

/** False for a project that only credentials name. */
function isListed(project: string, { config }: Configuration): boolean {
  return config.projects.some(({ id }) => id === project)
}

/** Limits set on the admin port, as it reports them, the oldest first. */
export function reportQuotas(quotas: Iterable<StoredQuota>, loaded: Configuration) {
  const oldestFirst = [...quotas].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  return oldestFirst.map(quota => reportQuota(quota, loaded))
}

function reportQuota(set: StoredQuota, loaded: Configuration) {
  const { project, bucket, quota, until, why, by, at } = set
  const fault = quotaFault(quotaForNow(set), loaded)
  return {
    ...{ project, bucket, quota },
    listed: isListed(project, loaded),
    until: until ?? null,
    /** False once it has expired, and while the files leave it without effect. */
    in_force: fault === undefined && !isPast(set, Date.now()),
    without_effect: fault ?? null,
    src: quotaPath(quotaId(set)),
    since: at,
    ...{ why, by },
  }
}

/** The limits that projects.yaml gives the project. */
function writtenFor(id: string, { config }: Configuration) {
  const place = config.projects.findIndex(one => one.id === id)
  return Object.entries(config.projects[place]?.overrides ?? {}).map(([bucket, quota]) => {
    const { file, line } = config.locate(config.projectsFile, ['projects', place, 'overrides', bucket])
    return {
      ...{ project: id, bucket, quota: writtenQuota(quota), listed: true, until: null },
      ...{ in_force: true, without_effect: null, src: `${file}:${line}`, since: null, why: null, by: null },
    }
  })
}
