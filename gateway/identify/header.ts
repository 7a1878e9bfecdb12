/** Plugin: the project that a trusted hop names in a header; from any other peer the header is ignored. */
import { Type } from 'typebox'
import { definePlugin } from '../plugin.js'

export const header = definePlugin({
  name: 'header',
  kind: 'identify',
  listedOnly: () => true,
  schema: Type.Object({
    header: Type.String({
      default: 'x-sluice-project',
      pattern: '^[A-Za-z0-9-]{1,64}$',
      description: 'The header that holds the project id; counts only from a trusted proxy.',
    }),
  }),
  create: (config, { projects }) => {
    const byId = new Map(projects.map(project => [project.id, project]))
    const name = config.header.toLowerCase()
    return {
      identify: facts => (facts.trusted ? byId.get(facts.header(name) ?? '') : undefined),
    }
  },
})
