/** The fields that a route gives to every response, whoever gives it. */
import type { Route } from '../route.js'
import type { Entered } from './enter.js'
import type { RouteFields } from './request-context.js'

/** Undefined for most routes. */
export function routeFieldsOf({ route, facts, project }: Entered): RouteFields | undefined {
  const { responseFields: changes, cors } = route ?? NO_ROUTE
  if (changes === undefined && cors === undefined) return undefined
  const {
    set = NONE,
    added = NONE,
    removed = NONE,
  } = {
    set: changes?.fieldsFor(facts, project),
    added: changes?.addedFor(facts, project),
    removed: changes?.removed,
  }
  if (cors === undefined) return { set, added, removed, hasCors: false, isReadable: true }
  const forPages = cors.fieldsFor(facts.header('origin'))
  return {
    set: [...set, ...forPages],
    added: [...added, ...cors.added],
    removed: [...removed, ...cors.removed],
    hasCors: true,
    isReadable: forPages.length > 0,
  }
}

const NO_ROUTE: Partial<Route> = {}
const NONE: readonly string[] = []

/** Fields about content and how long it lasts, and those that refusals have of their own. */
const NOT_OF_REFUSALS = new Set(
  [
    'accept-ranges age allow cache-control content-disposition content-encoding content-language',
    'content-location content-range content-type etag expires last-modified location retry-after',
    'www-authenticate',
  ].flatMap(line => line.split(' ')),
)

/** The fields of a refusal: the gateway's own, and those of the route that do not describe an upstream's content. */
export function refusalFields(own: readonly string[], route: RouteFields | undefined): readonly string[] {
  if (route === undefined) return own
  return [...own, ...kept(route.set), ...kept(route.added)]
}

function kept(fields: readonly string[]): string[] {
  return fields.filter((_, i) => !NOT_OF_REFUSALS.has(fields[i - (i % 2)] as string))
}

/** The fields of a response of the gateway that its route asks for, with those that the route changes. */
export function ownFields(fields: readonly string[], route: RouteFields | undefined): string[] {
  if (route === undefined) return [...fields]
  const { set, added } = route
  const isReplaced = (name: string) => set.some((one, i) => i % 2 === 0 && one === name)
  return [...fields.filter((_, i) => !isReplaced(fields[i - (i % 2)] as string)), ...set, ...added]
}
