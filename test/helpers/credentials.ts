/** The credentials that count where nothing is set, for tests of the rooms alone. */
import { createCredentials } from '../../gateway/listen/credentials.js'

export const hasCredential = createCredentials({
  headers: ['authorization', 'x-api-key', 'x-session-token'],
  cookies: ['*session*'],
})
