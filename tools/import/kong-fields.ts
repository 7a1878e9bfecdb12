/** Header fields that Kong's transformers change. */
import { changeOf, type FieldChange, fieldsWith, headersOf, isPlainText } from './fields.js'
import type { Findings, Origin } from './findings.js'
import type { RouteParts } from './routes.js'
import type { Section } from './yaml.js'

type Side = 'request' | 'response'

/** The settings of the nearest transformer of each name. */
export const transformersOf = (plugins: readonly Section[], of: Side): Section[] =>
  [`${of}-transformer`, `${of}-transformer-advanced`].flatMap(
    name => plugins.find(one => one.text('name') === name)?.section('config') ?? [],
  )

interface KongChange {
  readonly at: Origin
  readonly name: string
  readonly how: string
  /** Absent where no route can make it. */
  readonly change: FieldChange | undefined
}

/** In the order in which Kong makes them. What depends on the field being there is none of a route. */
const KINDS = { remove: 'remove', rename: undefined, replace: undefined, add: 'set', append: 'add' } as const

function changesIn(plugins: readonly Section[], of: Side): KongChange[] {
  return transformersOf(plugins, of).flatMap(config =>
    Object.entries(KINDS).flatMap(([how, kind]) =>
      config
        .section(how)
        .texts('headers')
        .map(text => {
          const [name = ''] = text.split(':')
          const value = text.slice(name.length + 1).trim()
          const isPlain = isPlainText(value) && !value.includes('$(')
          const change = kind !== undefined && isPlain ? changeOf(of, kind, name, value) : undefined
          return { at: config.section(how).at('headers'), name, how, change }
        }),
    ),
  )
}

/** The changes of a route's transformers; reports those that a route cannot make. */
export function changesOf(plugins: readonly Section[], into: Findings): Pick<RouteParts, 'headers'> {
  const [request, response] = [changesIn(plugins, 'request'), changesIn(plugins, 'response')]
  for (const one of request) if (one.change === undefined) into.lostField(one.at, one.name, 'Kong')
  for (const { at, name, change } of response)
    if (change === undefined) into.leftOut(at, `the field ${name}. A route cannot change it so.`)
  for (const { at, how, change } of [...request, ...response])
    if (how === 'add' && change !== undefined)
      into.changedOnce(at, `the field ${change.name} is always set, by Kong only where there is none.`)
  const made = (some: readonly KongChange[]) => fieldsWith(some.flatMap(({ change }) => change ?? []))
  return headersOf(made(request), made(response))
}

/** Reports all fields that the transformers of a consumer change: no route does it for some callers alone. */
export function reportFields(plugins: readonly Section[], into: Findings): void {
  for (const { at, name } of changesIn(plugins, 'request')) into.lostField(at, name, 'Kong')
}
