import t from 'tap'
import { loadAdapter } from '../../../services/storage/driver.js'

const failing = (code: string, message: string) => async () => {
  throw Object.assign(new Error(message), { code })
}

t.test('a missing database driver is named, with advice on how to install it', async t => {
  await t.rejects(
    loadAdapter('mongodb', failing('ERR_MODULE_NOT_FOUND', "Cannot find package 'mongodb' imported from a")),
    {
      message:
        'The package mongodb is not installed for this platform. Install again without --omit=optional.',
    },
  )
  await t.rejects(
    loadAdapter('libsql', failing('MODULE_NOT_FOUND', "Cannot find module '@libsql/linux-x64-gnu'")),
    { message: /^The package libsql .* Or set MONGODB_URL to use MongoDB\.$/ },
  )
})

t.test('any other error of the driver is passed on unchanged', async t => {
  await t.rejects(loadAdapter('libsql', failing('ERR_MODULE_NOT_FOUND', "Cannot find package 'pino'")), {
    message: "Cannot find package 'pino'",
  })
  t.equal(await loadAdapter('libsql', async () => 'it'), 'it')
})
