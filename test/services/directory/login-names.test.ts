/** A userName belongs to one user, however it is written. */

import t from 'tap'
import { onEachDatabase } from './databases.js'
import { okta, patchOp } from './harness.js'
import { refusal } from './scim/tools.js'

const spellings = [
  'ΑΣ@straße.example',
  'ασ@strasse.example',
  'ΑΣ@STRASSE.example ',
  'Ας@stra\u200Bße.example',
]
const [name = '', ...others] = spellings
const find = (userName: string): string =>
  `/Users?${new URLSearchParams({ filter: `userName eq "${userName}"` })}`

onEachDatabase(
  t,
  'another spelling of a userName is refused for others, finds its user, and may be taken by that user',
  async (t, service) => {
    const { scim, tenant, product } = await service.directory()
    const { body: user } = await scim('POST', '/Users', okta(name))
    const { body: other } = await scim('POST', '/Users', okta('other'))
    for (const userName of others) {
      const told = JSON.stringify(userName)
      t.match(await scim('POST', '/Users', okta(userName)), refusal(409, 'uniqueness'), told)
      t.match(await scim('PUT', `/Users/${other.id}`, okta(userName)), refusal(409, 'uniqueness'), told)
      t.match(
        await scim('GET', find(userName)),
        { body: { Resources: [{ id: user.id, userName: name }] } },
        told,
      )
      const scanned = find(userName).replace('userName+eq', 'displayName+pr+and+userName+eq')
      t.match(await scim('GET', scanned), { body: { totalResults: 1 } }, told)
      const of = new URLSearchParams({ tenant, product, email: userName })
      t.match(await service.manage('GET', `/users?${of}`), { body: { data: [{ id: user.id }] } }, told)
      const change = patchOp({ op: 'replace', path: 'userName', value: userName })
      t.match(await scim('PATCH', `/Users/${user.id}`, change), { status: 200, body: { userName } }, told)
      await scim('PUT', `/Users/${user.id}`, okta(name))
    }
  },
)

onEachDatabase(
  t,
  'a userName with control characters or without anything visible is refused',
  async (t, service) => {
    const { scim } = await service.directory()
    for (const userName of ['a\u0000', 'a\nb', '\u0085a', 'a\u007F']) {
      const answer = await scim('POST', '/Users', okta(userName))
      t.match(answer, refusal(400, 'invalidValue'), JSON.stringify(userName))
      t.equal(
        answer.body.detail,
        'userName must not hold control characters, such as a line break or U+0000.',
      )
    }
    for (const userName of ['', ' ', '\u200B', '\u00A0\uFEFF']) {
      const answer = await scim('POST', '/Users', okta(userName))
      t.match(answer, refusal(400, 'invalidValue'), JSON.stringify(userName))
      t.equal(answer.body.detail, 'userName is required and must not be blank.')
    }
  },
)
