/** The credentials that count by default, for tests of single rooms. */
import { createCredentials } from '../../gateway/listen/credentials.js'

export const credentialIn = createCredentials({
  headers: ['authorization', 'x-api-key', 'x-session-token'],
  cookies: ['*session*'],
})
