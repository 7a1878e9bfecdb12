/** Reports settings of gateway.yaml that have no effect. */
import type { Config } from '../../config/load.js'
import { urlsOf } from '../../config/schema/upstream.js'
import { createNetworks } from '../../config/words/networks.js'
import { countsUnknownBy } from '../../config/words/words.js'
import { leadsTo } from '../starter/options.js'
import { holdsClients } from './access.js'
import type { Remark, Subject } from './lint.js'

export function checkGateway({ loaded: { config } }: Subject): Remark[] {
  return [
    ...noPolicies(config),
    ...countsByHost(config),
    ...wideProxies(config),
    ...heldProxies(config),
    ...ownUpstreams(config),
  ]
}

function noPolicies({ gatewayFile: file, policies, access }: Config): Remark[] {
  if (policies.length + access.length > 0) return []
  const message = 'There are no policy files (*.yaml) in this folder: nothing is limited.'
  return [{ severity: 'warning', file, path: ['policies'], message }]
}

/** Unknown projects that are counted by something that the client makes up. */
function countsByHost({ gatewayFile: file, gateway: { unknownProject } }: Config): Remark[] {
  if (unknownProject === 'reject' || countsUnknownBy(unknownProject) !== 'host') return []
  const message =
    'A client chooses its Host: with each host it makes up, up to a hundred, it has another quota. Count by client, or reject unknown projects.'
  return [{ severity: 'warning', file, path: ['unknownProject', 'countBy'], message }]
}

/** Proxies among which are clients, who then choose the address they are counted by. */
function wideProxies({ gatewayFile: file, gateway: { trustedProxies } }: Config): Remark[] {
  return trustedProxies.flatMap((proxy, i): Remark[] => {
    if (!holdsClients(proxy)) return []
    const message = `${proxy} holds clients too: each of them chooses by X-Forwarded-For the address that it is counted by. List only the addresses of your proxies.`
    return [{ severity: 'warning', file, path: ['trustedProxies', i], message }]
  })
}

/** Proxies that are already contained in others of the list. */
function heldProxies({ gatewayFile: file, gateway }: Config): Remark[] {
  const proxies = gateway.trustedProxies
  return proxies.flatMap((proxy, i): Remark[] => {
    const holder = proxies.find((other, j) => {
      // Of two equal entries, the second is reported.
      return i !== j && createNetworks([other])(proxy) && (i > j || !createNetworks([proxy])(other))
    })
    if (holder === undefined) return []
    const message = `${proxy} lies in ${holder}, which is trusted anyway: one of the two is enough.`
    return [{ severity: 'note', file, path: ['trustedProxies', i], message }]
  })
}

/** Upstreams that are the gateway itself. */
function ownUpstreams({ gatewayFile: file, gateway: { listen, admin, upstreams } }: Config): Remark[] {
  return Object.entries(upstreams).flatMap(([name, upstream]): Remark[] => {
    const urls = 'embedded' in upstream ? [] : urlsOf(upstream)
    const path = ['upstreams', name]
    return urls.flatMap((url): Remark[] => {
      const own = (setting: string, consequence: string): Remark[] => {
        const message = `${url} has the port of this gateway itself (${setting}): ${consequence}.`
        return [{ severity: 'warning', file, path, message }]
      }
      if (leadsTo(url, listen)) return own('listen.port', 'each request would come back to it')
      if (leadsTo(url, admin)) return own('admin.port', 'clients could change what the gateway does')
      return []
    })
  })
}
