/** Sessions are left to a real identity provider; this service only says so. */
import { HttpError } from '../../http/errors.js'
import type { IdentityRoutes } from '../http.js'

export function sessionRoutes(): IdentityRoutes {
  return new Map([
    [
      '/sessions/whoami',
      {
        GET: async () => {
          throw new HttpError(
            401,
            'There are no sessions here; configure an identity provider as an upstream.',
            'no_session',
          )
        },
      },
    ],
  ])
}
