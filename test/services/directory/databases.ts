import type { Test } from 'tap'
import { mongoUrl } from '../../helpers/mongo.js'
import { type Service, startService } from './harness.js'

/** Tests a behaviour of the whole service with SQLite and with MongoDB. */
export function onEachDatabase(
  t: Test,
  behaviour: string,
  check: (t: Test, service: Service) => Promise<void>,
): void {
  t.test(`${behaviour} (SQLite)`, async t => check(t, await startService(t)))
  t.test(`${behaviour} (MongoDB)`, async t => {
    const url = await mongoUrl(t)
    if (url !== undefined) await check(t, await startService(t, { MONGODB_URL: url }))
  })
}
