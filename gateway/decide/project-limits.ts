/** Plugin: a bucket's burst and sustained quota, charged all-or-nothing (spec, 'Project rate limits'). */
import { type Static, Type } from 'typebox'
import { definePlugin } from '../plugin.js'
import type { Demand } from '../types.js'
import { ruleDemand } from './rule-demand.js'

const SECOND = 1000
const MINUTE = 60_000

const schema = Type.Object({
  burst: Type.Integer({ minimum: 1, description: 'Requests per second.' }),
  sustained: Type.Integer({ minimum: 1, description: 'Requests per minute.' }),
  algorithm: Type.Union([
    Type.Literal('sliding-window'),
    Type.Literal('fixed-window'),
    Type.Literal('token-bucket'),
  ]),
  lease: Type.Boolean(),
})

export const projectLimits = definePlugin({
  name: 'project-limits',
  kind: 'limit',
  schema,
  create: () => ({ demand: ruleDemand(demandOf) }),
})

/** What a bucket's quota wants counted. */
export function demandOf(quota: Static<typeof schema>): Extract<Demand, { kind: 'windows' }> {
  const { burst, sustained, algorithm, lease } = quota
  const windows = [
    { name: 'burst', quota: burst, ms: SECOND, algorithm },
    { name: 'sustained', quota: sustained, ms: MINUTE, algorithm },
  ]
  return { kind: 'windows', windows, lease }
}
