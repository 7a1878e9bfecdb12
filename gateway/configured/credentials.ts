/** Whether the identifiers of a configuration can give what its routes and listener ask for. */
import type { Config } from '../../config/load.js'
import type { PluginSet } from '../plugins.js'
import type { Fault } from '../policy/fault.js'

/** The faults of routes that no request could pass, and of an identifier that could never find anybody. */
export function credentialFaults({ gateway, gatewayFile: file }: Config, plugins: PluginSet): Fault[] {
  const used = gateway.identify.flatMap(
    ({ plugin }) => plugins.identify.find(({ name }) => name === plugin) ?? [],
  )
  const checks = used.some(({ verifies }) => verifies)
  const giveScopes = used.some(({ givesScopes }) => givesScopes)
  const faults = gateway.routes.flatMap(({ auth, scopes }, i): Fault[] => {
    const path = ['routes', i]
    if (auth === 'required' && !checks) {
      const message =
        'No identifier of "identify" checks credentials, so no request could take this route. Add jwt, api-key or client-certificate.'
      return [{ file, path: [...path, 'auth'], message }]
    }
    if (scopes.length > 0 && auth !== 'required') {
      return [
        {
          file,
          path: [...path, 'scopes'],
          message: 'Scopes are those of a credential: set "auth: required" too.',
        },
      ]
    }
    if (scopes.length > 0 && !giveScopes) {
      return [
        {
          file,
          path: [...path, 'scopes'],
          message: 'No identifier of "identify" gives scopes: jwt and api-key do.',
        },
      ]
    }
    return []
  })
  const certificates = gateway.identify.findIndex(({ plugin }) => plugin === 'client-certificate')
  if (certificates !== -1 && gateway.listen.tls?.clientCa === undefined) {
    const message = 'No client is asked for a certificate: name the authority in "listen.tls.clientCa".'
    faults.push({ file, path: ['identify', certificates], message })
  }
  return faults
}
