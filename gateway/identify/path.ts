/** Plugin: the project whose `paths` list a prefix of the request's path; the longest prefix wins. */
import { Type } from 'typebox'
import { definePlugin, type KnownProject } from '../plugin.js'

export const path = definePlugin({
  name: 'path',
  kind: 'identify',
  schema: Type.Object({}),
  create: (_config, { projects }) => {
    const byPrefix = new Map<string, KnownProject>()
    for (const project of projects) {
      for (const prefix of project.paths) byPrefix.set(prefix.replace(/\/$/, ''), project)
    }
    return {
      identify: facts => {
        if (byPrefix.size === 0) return undefined
        for (let end = facts.path.length; end > 0; end = facts.path.lastIndexOf('/', end - 1)) {
          const project = byPrefix.get(facts.path.slice(0, end))
          if (project !== undefined) return project
        }
        return byPrefix.get('')
      },
    }
  },
})
