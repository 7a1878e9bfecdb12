/** Reports API keys that let nobody in, and routes that nobody can take because there is no key. */
import { existsSync } from 'node:fs'
import { fileBeside } from '../../config/files.js'
import { type ApiKey, stateOf } from '../../gateway/identify/api-keys/key-file.js'
import { readKeys } from '../../gateway/identify/api-keys/key-store.js'
import type { Remark, Subject } from './lint.js'

/** More of one kind are counted, not named. */
const MOST_NAMED = 5

export function checkCallers(subject: Subject): Remark[] {
  const { gateway, gatewayFile, projects } = subject.loaded.config
  const file = gateway.apiKeys === undefined ? undefined : fileBeside(gatewayFile, gateway.apiKeys)
  // Without an identifier that reads the file, nobody has checked that it can be used.
  const isRead = gateway.identify.some(({ plugin }) => plugin === 'api-key')
  const active =
    file === undefined || !isRead ? [] : readKeys(file).filter(key => stateOf(key, subject.now) === 'active')
  const listed = new Set(projects.map(({ id }) => id))
  const lost = active.filter(key => !listed.has(key.project))
  const hasKey = lost.length < active.length || projects.some(one => one.apiKeyHashes.length > 0)
  return [
    ...(file === undefined ? [] : keysRemarks(subject, file, isRead, lost)),
    ...(hasKey ? [] : closedRoutes(subject)),
  ]
}

function keysRemarks({ loaded }: Subject, keyFile: string, isRead: boolean, lost: readonly ApiKey[]) {
  const remark = (severity: Remark['severity'], message: string): Remark[] => [
    { severity, file: loaded.config.gatewayFile, path: ['apiKeys'], message },
  ]
  if (!isRead) return remark('warning', 'No key of this file lets anybody in: add api-key to "identify".')
  if (!existsSync(keyFile)) {
    return remark('note', `There is no ${keyFile} yet: "sluice keys add" makes it.`)
  }
  if (lost.length === 0) return []
  const named = lost.slice(0, MOST_NAMED).map(({ id, project }) => `${id} (${project})`)
  const more = lost.length > MOST_NAMED ? ` and ${lost.length - MOST_NAMED} more` : ''
  return remark(
    'warning',
    `Keys of projects that projects.yaml does not list are refused: ${named.join(', ')}${more}.`,
  )
}

/** Said once, at the first such route. */
function closedRoutes({ loaded: { config, compiled } }: Subject): Remark[] {
  const first = config.gateway.routes.findIndex(({ auth }) => auth === 'required')
  const others = compiled.identifiers.some(({ name, verifies }) => verifies && name !== 'api-key')
  if (first === -1 || others) return []
  const message =
    'No request can take a route with "auth: required": no API key works. "sluice keys add" makes one, in the file of "apiKeys".'
  return [{ severity: 'warning', file: config.gatewayFile, path: ['routes', first, 'auth'], message }]
}
