/** Plugin: the project whose `hosts` list the request's host. */
import { Type } from 'typebox'
import { definePlugin } from '../plugin.js'

export const host = definePlugin({
  name: 'host',
  kind: 'identify',
  listedOnly: () => true,
  schema: Type.Object({}),
  create: (_config, { projects }) => {
    const byHost = new Map(
      projects.flatMap(project => project.hosts.map(name => [name.toLowerCase(), project])),
    )
    return { identify: facts => byHost.get(facts.host) }
  },
})
