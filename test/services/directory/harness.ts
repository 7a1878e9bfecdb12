import type { Test } from 'tap'
import { start } from '../../../services/directory/index.js'

import type { Received } from '../../helpers/receiver.js'

export { type Received, startReceiver } from '../../helpers/receiver.js'

export const apiKey = 'test-key-0123456789'

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape
  body: any
}

export interface Directory {
  id: string
  secret: string
  tenant: string
  product: string
  /** A SCIM call with the directory's secret. */
  scim(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

export interface Service {
  url: string
  dataDir: string
  notes: string[]
  logged: string[]
  close(): Promise<void>
  metrics(): Promise<string>
  /** A management call with the API key. */
  manage(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  directory(fields?: object): Promise<Directory>
}

/** The real service on a fresh data folder, closed when the test ends. */
export async function startService(
  t: Test,
  env: NodeJS.ProcessEnv = {},
  gatewaySecret?: string,
): Promise<Service> {
  const dataDir = env.DATA_DIR ?? t.testdir()
  const logged: string[] = []
  const write = (fields: object, message: string): void => {
    logged.push(`${message} ${JSON.stringify(fields)}`)
  }
  const log = { debug: write, info: write, warn: write, error: write }
  const given = gatewaySecret === undefined ? {} : { gatewaySecret }
  const service = await start({ env: { API_KEYS: apiKey, DATA_DIR: dataDir, ...env }, log, ...given })
  let open = true
  const close = async (): Promise<void> => {
    if (open) await service.close()
    open = false
  }
  t.teardown(close)

  const call: Service['call'] = async (method, path, body, headers = {}) => {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const own: Record<string, string> = gatewaySecret ? { 'x-sluice-secret': gatewaySecret } : {}
    const request = {
      method,
      headers: { ...type, ...own, ...headers },
      ...(text === undefined ? {} : { body: text }),
    }
    const answer = await fetch(new URL(path, service.url), request)
    const content = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      body: content === '' ? undefined : JSON.parse(content),
    }
  }
  const manage: Service['manage'] = (method, path, body, headers) =>
    call(method, `/api/v1/directory-sync${path}`, body, { authorization: `Api-Key ${apiKey}`, ...headers })
  let made = 0

  return {
    ...service,
    dataDir,
    logged,
    close,
    call,
    manage,
    async directory(fields = {}) {
      const tenant = `tenant-${++made}`
      const { body } = await manage('POST', '', {
        name: 'Test',
        tenant,
        product: 'app',
        type: 'okta-scim-v2',
        ...fields,
      })
      const { id, scim, ...rest } = body.data
      return {
        id,
        secret: scim.secret,
        tenant: rest.tenant,
        product: rest.product,
        scim: (method, path, content, headers) =>
          call(method, `${scim.path}${path}`, content, {
            authorization: `Bearer ${scim.secret}`,
            ...headers,
          }),
      }
    },
  }
}

export const okta = (userName: string, more: object = {}): object => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName,
  name: { givenName: 'Ada', familyName: 'Lovelace' },
  emails: [{ primary: true, value: userName, type: 'work' }],
  displayName: 'Ada Lovelace',
  active: true,
  ...more,
})

export const patchOp = (...Operations: object[]): object => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations,
})

export const hookSecret = 'hush-hush'

/** A directory with a webhook to the address. */
export const hooked = (
  service: Service,
  webhook_url: string,
  webhook_secret = hookSecret,
): Promise<Directory> => service.directory({ webhook_url, webhook_secret })

/** The sequences of all received events, sent one by one or in arrays. */
export const sequences = (calls: readonly Received[]): number[] =>
  calls.flatMap(({ event }) => event).map(event => event.sequence)

/** Creates users with these names, one after the other. */
export async function writeUsers({ scim }: Pick<Directory, 'scim'>, names: string[]): Promise<void> {
  for (const name of names) await scim('POST', '/Users', okta(name))
}
