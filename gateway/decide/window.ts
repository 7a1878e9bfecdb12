/** Plugin: a bucket's burst and sustained quota, charged all-or-nothing (spec, 'Project rate limits'). */
import { Type } from 'typebox'
import { definePlugin } from '../plugin.js'

const SECOND = 1000
const MINUTE = 60_000

export const projectLimits = definePlugin({
  name: 'project-limits',
  kind: 'limit',
  schema: Type.Object({
    burst: Type.Integer({ minimum: 1, description: 'Requests per second.' }),
    sustained: Type.Integer({ minimum: 1, description: 'Requests per minute.' }),
  }),
  create: () => ({
    demand: ({ rule: { config } }) => ({
      kind: 'windows',
      windows: [
        { name: 'burst', quota: config.burst, ms: SECOND },
        { name: 'sustained', quota: config.sustained, ms: MINUTE },
      ],
    }),
  }),
})
