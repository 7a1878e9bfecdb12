/** Modes set on the admin port: makes a rule report-only or enforced for now, and undoes it. */
import { isProjectLimits } from '../../config/load.js'
import { unknownName } from '../../config/problem.js'
import { ownerOfTrial } from '../../config/words/share.js'
import type { Overrides } from '../admin/overrides.js'
import type { Configuration } from '../configured/load.js'
import { NotFound, Taken, Unnamed } from '../errors.js'
import type { Log, Mode, Rule } from '../types.js'
import { dropExpired } from './limit.js'
import { changesFor, logOverride, newOverride } from './override.js'
import type { Contents, OverrideChange, OverrideStore } from './store.js'
import { type Ending, isPast, untilFault } from './until.js'

/** A rule's mode, as it is stored. */
export interface ModeOverride extends Ending {
  readonly rule: string
  readonly mode: Mode
  readonly why: string
  readonly by: string
  /** ISO 8601. */
  readonly at: string
  /** Id of the override that set it. */
  readonly override: string
}

/** The source that is reported for a mode set on the admin port. */
export const modePath = (rule: string): string => `/rules/${rule}/mode`

/** `loaded` returns the configuration as the files say it. */
export function modeOverrides(
  store: Omit<OverrideStore, 'close'>,
  loaded: () => Configuration,
  log: Log,
): Overrides['modes'] {
  return {
    async put(id, { mode, until, ...reason }, from) {
      const fault = untilFault({ ...(until && { until }) })
      if (fault !== undefined) throw new Unnamed(fault)
      const what = `${mode === 'enforce' ? 'Enforced' : 'Made report-only'}: "${id}"${untilText(until)}.`
      const override = newOverride('mode', what, { ...reason, from, ...(until && { until }), set: id })
      const value: ModeOverride = {
        rule: id,
        mode,
        ...(until && { until }),
        why: reason.why,
        by: override.by,
        at: override.at,
        override: override.id,
      }
      const created = await store.change(contents => {
        checkChange(id, mode, loaded(), contents)
        const changes: OverrideChange[] = [
          ...dropExpired('modes', id, contents),
          { collection: 'modes', id, value },
          ...changesFor(override, contents),
        ]
        return { changes, result: !contents.modes.has(id) }
      })
      logOverride(log, 'mode-set', override, value, 'A mode was set by the admin API')
      return { created, entry: reportMode(value, loaded()) }
    },

    async remove(id, reason, from) {
      const override = newOverride('mode', `Undone: "${id}" is as its file says.`, { ...reason, from })
      const removed = await store.change(contents => {
        const value = contents.modes.get(id)
        if (value === undefined) throw new NotFound(`The admin API has set no mode for "${id}".`)
        const changes: OverrideChange[] = [{ collection: 'modes', id }, ...changesFor(override, contents)]
        return { changes, result: value }
      })
      logOverride(
        log,
        'mode-removed',
        override,
        { rule: id, why: reason.why ?? null },
        'A mode was undone by the admin API',
      )
      return { removed: reportMode(removed, loaded()) }
    },
  }
}

/** All modes that are set, as the admin port reports them, the oldest first. */
export function reportModes({ modes }: Contents, loaded: Configuration) {
  const oldestFirst = [...modes.values()].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  return oldestFirst.map(mode => reportMode(mode, loaded))
}

function reportMode(set: ModeOverride, loaded: Configuration) {
  const { rule, mode, until, why, by, at } = set
  const declared = ruleOf(rule, loaded)?.declared
  return {
    rule,
    mode,
    /** The mode in the files; null when they have no such rule. */
    declared_mode: declared ?? null,
    until: until ?? null,
    in_force: declared !== undefined && !isPast(set, Date.now()),
    without_effect: declared === undefined ? `No rule is called "${rule}" now.` : null,
    src: modePath(rule),
    since: at,
    why,
    by,
  }
}

/** @throws {NotFound} {Taken} {Unnamed} when the mode cannot be set */
function checkChange(id: string, mode: Mode, loaded: Configuration, { access }: Contents): void {
  const rule = ruleOf(id, loaded)
  if (rule === undefined) {
    if (access.has(id)) throw new Taken(`"${id}" was set by the admin API: change it by PUT /access/${id}.`)
    const owner = ownerOfTrial(id)
    if (owner !== undefined && ruleOf(owner, loaded) !== undefined) {
      throw new Unnamed(`"${id}" is a trial, which only reports.`)
    }
    throw new NotFound(unknownName('rule', id, new Set(namesOf(loaded))))
  }
  if (mode === 'enforce' && rule.isShared) {
    throw new Unnamed(
      `"${id}" is in force for a share of its keys, and that can only be raised in its file: change enforceFor there. DELETE ${modePath(id)} undoes what was set here.`,
    )
  }
}

/** A rule as the files say it. */
function ruleOf(
  id: string,
  { config, compiled }: Configuration,
): { readonly declared: Mode; readonly isShared: boolean } | undefined {
  const bucket = compiled.policy.buckets.find(({ name }) => name === id)
  if (bucket !== undefined) {
    const isShared = config.policies
      .filter(isProjectLimits)
      .some(({ document }) => document.enforceFor !== undefined && Object.hasOwn(document.buckets, id))
    return { declared: bucket.mode, isShared }
  }
  const rule = rulesOf({ compiled }).find(one => one.id === id)
  return rule && { declared: rule.mode, isShared: rule.share !== undefined }
}

/** All but trials, whose mode cannot be set. */
function rulesOf({ compiled }: Pick<Configuration, 'compiled'>): Rule[] {
  return [...compiled.policy.rules, ...compiled.access.entries]
    .map(({ rule }) => rule)
    .filter(({ id }) => ownerOfTrial(id) === undefined)
}

function namesOf(loaded: Configuration): string[] {
  return [...loaded.compiled.policy.buckets.map(({ name }) => name), ...rulesOf(loaded).map(({ id }) => id)]
}

function untilText(until: string | undefined): string {
  return until === undefined ? '' : ` until ${until}`
}
