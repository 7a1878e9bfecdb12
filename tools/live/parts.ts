/** The options that name a counter: the parts of its key, as in a request that it counts. */
import type { Options } from '../command.js'

const part = (value: string, help: string) => ({ type: 'string', value, help }) as const

export const PARTS = {
  path: part('PATH', 'path of such a request'),
  method: part('METHOD', 'its method'),
  ip: part('ADDRESS', 'its client address'),
  header: {
    type: 'string',
    value: "'NAME: VALUE'",
    multiple: true,
    help: 'one of its headers; without a value: it does not have it',
  },
  ja3: part('HASH', 'JA3 fingerprint of its TLS; empty: it has none'),
  ja4: part('HASH', 'JA4 fingerprint of its TLS; empty: it has none'),
  auth: part('WORD', 'authenticated or anonymous'),
  email: part('ADDRESS', 'e-mail address that it names'),
  flow: part('ID', 'flow id that it names'),
} as const satisfies Options

type Given = { readonly [Name in keyof typeof PARTS]: string | readonly string[] | undefined }

/** The parts as query parameters of the admin port. */
export function partsOf(values: Given): Given {
  const { path, method, ip, header, ja3, ja4, auth, email, flow } = values
  return {
    path,
    method: (method as string | undefined)?.toUpperCase(),
    ip,
    header,
    ja3,
    ja4,
    auth,
    email,
    flow,
  }
}
