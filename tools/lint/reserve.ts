/** Reports costs that are settled by a response's body which may come compressed: then nobody can read them. */
import { listed, type Path } from '../../config/problem.js'
import { patternsOf } from '../../config/words/bucket.js'
import type { ReservedCost } from '../../config/words/reserve.js'
import { settlesByBody } from '../../gateway/decide/reserve/settle.js'
import { parsePattern } from '../../gateway/policy/pattern.js'
import type { Remark, Subject } from './lint.js'
import { meet } from './reach.js'

const FIELD = 'accept-encoding'
/** Routes that a message names. */
const MOST_NAMED = 3

export function checkSettling({ limits, loaded }: Subject): Remark[] {
  const compressing = loaded.config.gateway.routes.filter(({ upstream, split, headers }) => {
    const { set = {}, remove = [] } = headers?.request ?? {}
    return (upstream ?? split) !== undefined && !remove.includes(FIELD) && set[FIELD] !== 'identity'
  })
  return limits.flatMap(({ file, document }) =>
    Object.entries(document.buckets).flatMap(([name, bucket]) => {
      const path: Path = ['buckets', name]
      const settled = patternsOf(bucket, path).flatMap(({ text, reserved }) =>
        reserved !== undefined && settlesByBody(reserved) ? [{ pattern: parsePattern(text), reserved }] : [],
      )
      const [first] = settled
      const routes = compressing
        .map(route => route.path)
        .filter(text => settled.some(({ pattern }) => meet(parsePattern(text).segments, pattern.segments)))
      if (first === undefined || routes.length === 0) return []
      return [
        {
          severity: 'warning',
          file,
          path: [...path, 'cost', 'settle'],
          message: textOf(first.reserved, routes),
        },
      ]
    }),
  )
}

function textOf(
  { settle: { jsonBody, sse }, unknown = 'keep' }: ReservedCost,
  routes: readonly string[],
): string {
  const numbers = [...new Set([jsonBody, sse].filter(path => path !== undefined))]
  const more = routes.length > MOST_NAMED ? [`${routes.length - MOST_NAMED} more`] : []
  const where = listed([...routes.slice(0, MOST_NAMED), ...more], 'and')
  return `In compressed responses the gateway cannot read ${listed(numbers, 'and')}: such requests cost what "unknown: ${unknown}" says. So that there are none, write headers: { request: { remove: [${FIELD}] } } at the routes to ${where}.`
}
