/** Reports API keys that let nobody in. */
import { existsSync } from 'node:fs'
import { fileBeside } from '../../config/files.js'
import { stateOf } from '../../gateway/identify/api-keys/key-file.js'
import { readKeys } from '../../gateway/identify/api-keys/key-store.js'
import type { Remark, Subject } from './lint.js'

/** More of one kind are counted, not named. */
const MOST_NAMED = 5

export function checkCallers({ loaded: { config }, now }: Subject): Remark[] {
  const { gateway, gatewayFile: file, projects } = config
  if (gateway.apiKeys === undefined) return []
  const remark = (severity: Remark['severity'], message: string): Remark[] => [
    { severity, file, path: ['apiKeys'], message },
  ]
  if (!gateway.identify.some(({ plugin }) => plugin === 'api-key')) {
    return remark('warning', 'No key of this file lets anybody in: add api-key to "identify".')
  }
  const keyFile = fileBeside(file, gateway.apiKeys)
  if (!existsSync(keyFile)) {
    return remark('note', `There is no ${keyFile} yet: "sluice keys add" makes it.`)
  }
  const listed = new Set(projects.map(({ id }) => id))
  const lost = readKeys(keyFile).filter(key => stateOf(key, now) === 'active' && !listed.has(key.project))
  if (lost.length === 0) return []
  const named = lost.slice(0, MOST_NAMED).map(({ id, project }) => `${id} (${project})`)
  const more = lost.length > MOST_NAMED ? ` and ${lost.length - MOST_NAMED} more` : ''
  return remark(
    'warning',
    `Keys of projects that projects.yaml does not list are refused: ${named.join(', ')}${more}.`,
  )
}
