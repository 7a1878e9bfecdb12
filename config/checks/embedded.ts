/** The services that run inside the gateway's process, as far as a configuration knows them. */
import type { Gateway } from '../schema/gateway.js'

/** Each with the cookies by which it recognises its users. */
const SERVICES: Readonly<Record<string, readonly string[]>> = {
  directory: [],
  identity: ['sluice_identity'],
  welcome: [],
}

export const EMBEDDED_SERVICES: ReadonlySet<string> = new Set(Object.keys(SERVICES))

/** Adds the cookies of the services that are upstreams to the credentials, so that no operator has to list them. */
export function withEmbeddedCookies(gateway: Gateway): Gateway {
  const { upstreams, credentials } = gateway
  const used = Object.values(upstreams).flatMap(one => ('embedded' in one ? [one.embedded] : []))
  const cookies = new Set([...credentials.cookies, ...used.flatMap(name => SERVICES[name] ?? [])])
  return { ...gateway, credentials: { ...credentials, cookies: [...cookies] } }
}
