/** A gateway with the embedded directory, for faults of its store and of its receivers. */
import { randomUUID } from 'node:crypto'
import { gatewayProcess, writeConfig } from '../../dist/test/helpers/gateway-process.js'
import { send } from '../../dist/test/helpers/http.js'

const KEY = 'chaos-management-key-0123'
const YAML = `version: 1
listen: { host: 127.0.0.1, port: 0, maxEventLoopDelay: 1h }
admin: { host: 127.0.0.1, port: 0 }
upstreams: { directory: { embedded: directory } }
routes: [{ path: /**, upstream: directory }]
unknownProject: enterprise
`

/** @returns the `gateway`, `manage` (a call of the management API) and `directory` (a new one, with its calls) */
export async function startDirectory(t, env) {
  const folder = writeConfig(t, YAML, {})
  const gateway = await gatewayProcess(t, folder, { API_KEYS: KEY, ...env })
  const call = async (path, method, authorization, body) => {
    const sentAt = performance.now()
    const headers = { authorization, 'content-type': 'application/json' }
    const sent = { method, headers, agent: false, ...(body && { body: JSON.stringify(body) }) }
    const answer = await send(gateway.url + path, sent).catch(error => ({ status: error.code, headers: {} }))
    return { ...answer, ms: performance.now() - sentAt }
  }
  const manage = (method, path, body) => call(`/api/v1/directory-sync${path}`, method, `Api-Key ${KEY}`, body)
  return {
    gateway,
    async directory(settings = {}) {
      const answer = await manage('POST', '', { tenant: randomUUID(), product: 'chaos', ...settings })
      if (answer.status !== 201) throw new Error(`no directory: ${answer.status} ${answer.body}`)
      const { id, scim } = answer.json().data
      const intake = (method, path, body) => call(scim.path + path, method, `Bearer ${scim.secret}`, body)
      return {
        read: () => manage('GET', `/${id}`),
        addUser(userName) {
          const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
          return intake('POST', '/Users', { schemas, userName, emails: [{ value: userName, primary: true }] })
        },
        /** The number of users. */
        async users() {
          return (await intake('GET', '/Users?count=1')).json().totalResults
        },
      }
    },
  }
}
