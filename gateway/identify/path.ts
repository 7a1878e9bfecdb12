/** Plugin: the project whose `paths` list a prefix of the request's path; the longest prefix wins. */
import { Type } from 'typebox'
import { definePlugin, type KnownProject } from '../plugin.js'

export const path = definePlugin({
  name: 'path',
  kind: 'identify',
  listedOnly: () => true,
  schema: Type.Object({}),
  create: (_config, { projects }) => {
    const byPrefix = new Map<string, KnownProject>()
    for (const project of projects) {
      for (const prefix of project.paths) byPrefix.set(prefix.replace(/\/$/, ''), project)
    }
    const longest = Math.max(0, ...[...byPrefix.keys()].map(prefix => prefix.length))
    return {
      identify: ({ path }) => {
        if (byPrefix.size === 0) return undefined
        // A client's path may have thousands of segments; no prefix has.
        let end = path.length > longest ? path.lastIndexOf('/', longest) : path.length
        for (; end > 0; end = path.lastIndexOf('/', end - 1)) {
          const project = byPrefix.get(path.slice(0, end))
          if (project !== undefined) return project
        }
        return byPrefix.get('')
      },
    }
  },
})
