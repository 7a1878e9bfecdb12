/** A difference as people read it. */
import type { Io } from '../io.js'
import { printable, wrap } from '../text.js'
import type { Change, FieldChange } from './changes.js'
import type { Difference, ProjectChange } from './compare.js'

const MARKS = { added: '+', removed: '-', changed: '~' } as const
const STYLES = { added: 'green', removed: 'red', changed: 'yellow' } as const

export function writeDifference({ limits, moved, rules, projects, settings }: Difference, io: Io): void {
  const heading = (text: string) => io.out(`${io.style('bold', wrap(text, io.columns))}\n`)
  for (const { for: whom, buckets } of limits) {
    heading(`Limits for ${whom}`)
    for (const bucket of buckets) line(bucket.change, bucketText(bucket), io)
  }
  if (moved.length > 0) {
    heading('Requests that fall into another bucket')
    for (const { requests, from, to, for: whom } of moved) {
      line('changed', `${requests}: from ${bucketName(from)} to ${bucketName(to)}, for ${whom}`, io)
    }
  }
  if (rules.length > 0) {
    heading('Endpoint rules')
    for (const rule of rules) line(rule.change, ruleText(rule), io)
  }
  if (projects.length > 0) {
    heading('Projects')
    for (const project of projects) for (const text of projectTexts(project)) line(project.change, text, io)
  }
  if (settings.length > 0) {
    heading('Settings of gateway.yaml')
    for (const setting of settings) line('changed', fieldText(setting), io)
  }
}

function line(change: Change['change'], text: string, io: Io): void {
  const lines = wrap(printable(text), io.columns - 6).split('\n')
  const [first, ...rest] = lines
  io.out(
    `  ${io.style(STYLES[change], MARKS[change])} ${first}\n${rest.map(one => `      ${one}\n`).join('')}`,
  )
}

function bucketName(name: string | null): string {
  return name === null ? 'no bucket (no limit)' : name
}

/** `catch-all: 600 → 700 per second`. */
function bucketText({ name, change, fields }: Change): string {
  if (change === 'removed') return `${name}: no quota any more, its requests fall into other buckets`
  if (change === 'changed') return `${name}: ${fields.map(fieldText).join(', ')}`
  const value = (field: string) => fields.find(one => one.field === field)?.new
  return `${name}: ${value('burst')} per second, ${value('sustained')} per minute`
}

function ruleText({ name, change, fields }: Change): string {
  if (change === 'removed') return `${name}: removed`
  if (change === 'added') {
    return `${name}: ${fields.map(({ field, new: value }) => `${field} ${shown(value)}`).join(', ')}`
  }
  const fresh = fields.some(({ field }) => FRESH.has(field))
  return `${name}: ${fields.map(fieldText).join(', ')}${fresh ? '. It begins to count anew' : ''}`
}

/** These stand in the names of counters. */
const FRESH = new Set(['mode', 'key', 'kind'])

function projectTexts({ name, change, fields, buckets, as }: ProjectChange): string[] {
  if (change === 'removed') return [`${name}: removed; its requests are those of an unknown project`]
  const own = fields.length === 0 ? [] : [fields.map(fieldText).join(', ')]
  const limits = as === null ? buckets.map(bucketText) : [`limits as of ${as}`]
  return [...own, ...limits].map(text => `${name}: ${text}`)
}

const UNITS: Readonly<Record<string, string>> = { burst: ' per second', sustained: ' per minute' }

function fieldText({ field, old, new: now }: FieldChange): string {
  const unit = UNITS[field]
  if (unit !== undefined) return `${shown(old)} → ${shown(now)}${unit}`
  if (Array.isArray(old) && Array.isArray(now)) return listText(field, old, now)
  if (old === null) return `${field} ${shown(now)}`
  return now === null ? `no ${field} any more (${shown(old)})` : `${field} ${shown(old)} → ${shown(now)}`
}

/** Lists differ by what came and went; the order alone is told whole. */
function listText(field: string, old: readonly unknown[], now: readonly unknown[]): string {
  const [before, after] = [old.map(shown), now.map(shown)]
  const came = after.filter(one => !before.includes(one)).map(one => `+ ${one}`)
  const went = before.filter(one => !after.includes(one)).map(one => `- ${one}`)
  const both = [...went, ...came]
  return `${field} ${both.length > 0 ? both.join(', ') : `${before.join(', ')} → ${after.join(', ')}`}`
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(' + ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
