/** Modes set on the admin port: makes a rule report-only or enforced for now, and undoes it. */
import { isProjectLimits } from '../../../config/load.js'
import { unknownName } from '../../../config/readable.js'
import { bucketOfTrial } from '../../../config/rollout.js'
import type { ModeDesk } from '../../admin/acts.js'
import { NotFound, Taken, Unnamed } from '../../admin/refusals.js'
import type { Log, Mode, Rule } from '../../types.js'
import type { Loaded } from '../load.js'
import { actOf, changesFor, logAct } from './act.js'
import type { Contents, Kept, KeptChange } from './kept.js'
import { roomFor } from './room.js'
import { type Ending, isPast, untilFault } from './until.js'

/** A rule's mode, as it is stored. */
export interface KeptMode extends Ending {
  readonly rule: string
  readonly mode: Mode
  readonly why: string
  readonly by: string
  /** ISO 8601. */
  readonly at: string
  /** Id of the act that set it. */
  readonly act?: string
}

/** The source that is reported for a mode set on the admin port. */
export const modePath = (rule: string): string => `/rules/${rule}/mode`

/** `loaded` returns the configuration as the files say it. */
export function modeDesk(kept: Kept, loaded: () => Loaded, log: Log): ModeDesk {
  return {
    async put(id, { mode, until, ...wish }, from) {
      const fault = untilFault({ ...(until && { until }) })
      if (fault !== undefined) throw new Unnamed(fault)
      const what = `${mode === 'enforce' ? 'Enforced' : 'Made report-only'}: "${id}"${untilText(until)}.`
      const act = actOf('mode', what, { ...wish, from, ...(until && { until }), set: id })
      const value: KeptMode = {
        rule: id,
        mode,
        ...(until && { until }),
        why: wish.why,
        by: act.by,
        at: act.at,
        act: act.id,
      }
      const created = await kept.change(contents => {
        checkChange(id, mode, loaded(), contents)
        const changes: KeptChange[] = [
          ...roomFor('modes', id, contents),
          { shelf: 'modes', id, value },
          ...changesFor(act, contents),
        ]
        return { changes, result: !contents.modes.has(id) }
      })
      logAct(log, 'mode-set', act, value, 'A mode was set by the admin API')
      return { created, mode: toldMode(value, loaded()) }
    },

    async remove(id, wish, from) {
      const act = actOf('mode', `Undone: "${id}" is as its file says.`, { ...wish, from })
      const removed = await kept.change(contents => {
        const value = contents.modes.get(id)
        if (value === undefined) throw new NotFound(`The admin API has set no mode for "${id}".`)
        const changes: KeptChange[] = [{ shelf: 'modes', id }, ...changesFor(act, contents)]
        return { changes, result: value }
      })
      logAct(
        log,
        'mode-removed',
        act,
        { rule: id, why: wish.why ?? null },
        'A mode was undone by the admin API',
      )
      return { removed: toldMode(removed, loaded()) }
    },
  }
}

/** All modes that are set, as the admin port reports them, the oldest first. */
export function toldModes({ modes }: Contents, loaded: Loaded) {
  const oldestFirst = [...modes.values()].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  return oldestFirst.map(mode => toldMode(mode, loaded))
}

function toldMode(set: KeptMode, loaded: Loaded) {
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
function checkChange(id: string, mode: Mode, loaded: Loaded, { access }: Contents): void {
  const rule = ruleOf(id, loaded)
  if (rule === undefined) {
    if (access.has(id)) throw new Taken(`"${id}" was set by the admin API: change it by PUT /access/${id}.`)
    const bucket = bucketOfTrial(id)
    if (bucket !== undefined && ruleOf(bucket, loaded) !== undefined) {
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
  { config, compiled }: Loaded,
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

function rulesOf({ compiled }: Pick<Loaded, 'compiled'>): Rule[] {
  return [...compiled.policy.rules, ...compiled.access.entries].map(({ rule }) => rule)
}

function namesOf(loaded: Loaded): string[] {
  return [...loaded.compiled.policy.buckets.map(({ name }) => name), ...rulesOf(loaded).map(({ id }) => id)]
}

function untilText(until: string | undefined): string {
  return until === undefined ? '' : ` until ${until}`
}
