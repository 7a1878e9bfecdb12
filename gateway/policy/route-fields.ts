/** Compiles `headers` of a route. Pure. */
import type { RequestFieldChanges, ResponseFieldChanges } from '../route.js'
import type { Facts, Project } from '../types.js'
import { compileText, inCookie, isConstant, type TextFor } from './route-values.js'

export interface WrittenFields {
  readonly set?: Readonly<Record<string, string>> | undefined
  readonly add?: Readonly<Record<string, string>> | undefined
  /** Lower-case names. */
  readonly remove?: readonly string[] | undefined
}

export function compileRequestFields(written: WrittenFields | undefined): RequestFieldChanges | undefined {
  if (written === undefined) return undefined
  const { set = {}, add = {}, remove = [] } = written
  const lines = [...linesOf(set), ...linesOf(add)]
  return {
    removed: [...Object.keys(set), ...remove],
    textFor(facts, project) {
      let text = ''
      for (const [name, textFor] of lines) text += `${name}: ${textFor(facts, project)}\r\n`
      return text
    },
  }
}

export function compileResponseFields(written: WrittenFields | undefined): ResponseFieldChanges | undefined {
  if (written === undefined) return undefined
  return {
    removed: written.remove ?? [],
    fieldsFor: fieldsFor(written.set ?? {}),
    addedFor: fieldsFor(written.add ?? {}),
  }
}

/** Most values say nothing about the request: then the list is made once. */
function fieldsFor(values: Readonly<Record<string, string>>): ResponseFieldChanges['fieldsFor'] {
  if (Object.values(values).every(isConstant)) {
    const fields = Object.entries(values).flat()
    return () => fields
  }
  const lines = linesOf(values)
  return (facts, project) => flat(lines, facts, project)
}

type Lines = readonly (readonly [name: string, TextFor])[]

function linesOf(values: Readonly<Record<string, string>>): Lines {
  return Object.entries(values).map(([name, text]) => [
    name,
    compileText(text, name === 'set-cookie' ? inCookie : undefined),
  ])
}

function flat(lines: Lines, facts: Facts, project: Project | undefined): string[] {
  const fields: string[] = []
  for (const [name, textFor] of lines) fields.push(name, textFor(facts, project))
  return fields
}
