/** A gateway with the embedded directory, for faults of its store and of its receivers. */
import { randomUUID } from 'node:crypto'
import { type GatewayProcess, gatewayProcess, writeConfig } from '../../test/helpers/gateway-process.js'
import { type Received, send } from '../../test/helpers/http.js'
import type { Scope } from '../../test/helpers/scope.js'

const KEY = 'chaos-management-key-0123'
const SETTINGS = {
  upstreams: { directory: { embedded: 'directory' } },
  routes: [{ path: '/**', upstream: 'directory' }],
  unknownProject: 'enterprise',
}

/** A response, or the code of an error in place of its status. */
export interface Answer extends Pick<Received, 'headers' | 'body'> {
  readonly status: number | string | undefined
  readonly ms: number
}

export interface ChaosDirectory {
  read(): Promise<Answer>
  addUser(userName: string): Promise<Answer>
  /** The number of users. */
  users(): Promise<number>
}

export interface DirectoryService {
  readonly gateway: GatewayProcess
  /** Makes a new directory. */
  directory(settings?: object): Promise<ChaosDirectory>
}

export async function startDirectory(t: Scope, env: Record<string, string>): Promise<DirectoryService> {
  const folder = writeConfig(t, SETTINGS, {})
  const gateway = await gatewayProcess(t, folder, { API_KEYS: KEY, ...env })
  const agent = false as const
  const call = async (
    path: string,
    method: string,
    authorization: string,
    body?: object,
  ): Promise<Answer> => {
    const sentAt = performance.now()
    const headers = { authorization, 'content-type': 'application/json' }
    const sent = { method, headers, agent, ...(body && { body: JSON.stringify(body) }) }
    const failed = (error: NodeJS.ErrnoException) => ({ status: error.code, headers: {}, body: '' })
    const answer = await send(gateway.url + path, sent).catch(failed)
    return { ...answer, ms: performance.now() - sentAt }
  }
  const manage = (method: string, path: string, body?: object) =>
    call(`/api/v1/directory-sync${path}`, method, `Api-Key ${KEY}`, body)
  return {
    gateway,
    async directory(settings = {}) {
      const answer = await manage('POST', '', { tenant: randomUUID(), product: 'chaos', ...settings })
      if (answer.status !== 201) throw new Error(`no directory: ${answer.status} ${answer.body}`)
      const { id, scim } = JSON.parse(answer.body).data
      const intake = (method: string, path: string, body?: object) =>
        call(scim.path + path, method, `Bearer ${scim.secret}`, body)
      return {
        read: () => manage('GET', `/${id}`),
        addUser(userName) {
          const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
          return intake('POST', '/Users', { schemas, userName, emails: [{ value: userName, primary: true }] })
        },
        async users() {
          return JSON.parse((await intake('GET', '/Users?count=1')).body).totalResults
        },
      }
    },
  }
}
