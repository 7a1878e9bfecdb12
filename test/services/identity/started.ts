import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { start } from '../../../services/identity/index.js'

export const REGISTRATION = '/self-service/registration'
/** The Accept header of a browser. */
export const HTML = 'text/html,application/xhtml+xml,*/*;q=0.8'

/** For tests that speak as the gateway in front does. */
export const SECRET = 'secret-of-the-gateway'

export interface Reply {
  status: number
  header(name: string): string
  text: string
  json(): {
    [key: string]: unknown
    errors: { path: string; code: string; message: string }[]
    traits: object
    id: string
  }
}

/** The cookie that a response sets, as the browser sends it back. */
export const cookieOf = (reply: Reply) => reply.header('set-cookie').split(';')[0] as string

/** A running service, and everything it logged. */
export async function started(t: Test, env: NodeJS.ProcessEnv = {}, gatewaySecret?: string) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-identity-'))
  const lines: string[] = []
  const note = (fields: object, message: string) => lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = { debug: note, info: note, warn: note, error: note }
  t.teardown(() => rmSync(folder, { recursive: true }))
  const given = gatewaySecret === undefined ? {} : { gatewaySecret }
  const own: Record<string, string> = gatewaySecret ? { 'x-sluice-secret': gatewaySecret } : {}
  const service = await start({ env: { DATA_DIR: folder, ...env }, log, ...given })
  t.teardown(() => service.close())
  const call = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<Reply> => {
    const response = await fetch(service.url + path, {
      method,
      headers: { accept: '*/*', ...own, ...headers },
      redirect: 'manual',
      ...(body === undefined ? {} : { body }),
    })
    const text = await response.text()
    return {
      status: response.status,
      header: name => response.headers.get(name) ?? '',
      text,
      json: () => JSON.parse(text),
    }
  }
  const form = (fields: string, headers: Record<string, string> = {}) =>
    call('POST', REGISTRATION, { 'content-type': 'application/x-www-form-urlencoded', ...headers }, fields)
  const json = (method: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
    call(method, path, { 'content-type': 'application/json', ...headers }, JSON.stringify(body))
  return { service, lines, call, form, json, folder }
}

/** A filled-in registration. */
export const PERSON = 'traits.email=Ann%40x.example&traits.name.first=Ann'
