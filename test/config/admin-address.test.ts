/** The address of the admin port for a health check, which reads gateway.yaml alone. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adminAddress } from '../../config/admin-address.js'

const given = (text: string, env: Record<string, string> = {}) => {
  const folder = t.testdir()
  writeFileSync(join(folder, 'gateway.yaml'), text)
  return adminAddress(folder, env)
}

t.test('the address is as the file says it, or the default', async t => {
  t.same(given('version: 1'), { host: '127.0.0.1', port: 8081 })
  t.same(given('admin: { host: "::1" }'), { host: '::1', port: 8081 })
  t.same(given(`admin: { port: "\${ADMIN_PORT:-9}" }`), { host: '127.0.0.1', port: 9 })
  t.same(given(`admin: { port: "\${ADMIN_PORT:-9}" }`, { ADMIN_PORT: '10' }), { host: '127.0.0.1', port: 10 })
})

t.test('what is wrong elsewhere in the file does not matter', async t => {
  t.same(given(`admin: { port: 7 }\nlisten: { port: "\${PORT}" }\nroutes: what?`), {
    host: '127.0.0.1',
    port: 7,
  })
})

t.test('a file without an address is a sentence', async t => {
  t.match(given(`admin: { port: "\${ADMIN_PORT}" }`), {
    fault: /gateway\.yaml:1:\d+ .*ADMIN_PORT is not set/,
  })
  t.match(given('admin: { port: here }'), { fault: /admin\.host and admin\.port are not an address/ })
  t.match(given('admin: { host: "a b" }'), { fault: /admin\.host and admin\.port are not an address/ })
  t.match(given('admin: ['), { fault: /gateway\.yaml:1:/ })
  t.match(adminAddress(join(t.testdir(), 'none'), {}), { fault: /it does not exist/ })
})
