/** A client must not hide the e-mail from the gateway where some upstream finds it, and so get a fresh counter each time. */
import t from 'tap'
import { PEEK_BYTES } from '../../../gateway/decide/body-kind.js'
import { emailOrFlow } from '../../../gateway/decide/email-or-flow.js'
import type { Facts } from '../../../gateway/types.js'

const secret = Buffer.alloc(32, 7)
const FORM = 'application/x-www-form-urlencoded'
const MULTIPART = 'multipart/form-data; boundary=b0'
const ADDRESS = 'ann@example.org'

/** The key of a request that also names a flow, which differs each time. */
let flows = 0
function of(type: string | undefined, body: string, query = '', isLate = false): string | undefined {
  flows += 1
  const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
  const facts: Partial<Facts> = { query: `?flow=${flows}${query}`, header: name => headers[name] }
  return emailOrFlow(facts as Facts, Buffer.from(body, 'latin1'), secret, isLate)
}
const part = (disposition: string, value = ADDRESS) =>
  `--b0\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`

const ann = of(FORM, `email=${ADDRESS}`)
const unclear = of(FORM, `email=${ADDRESS}&email=q`)

t.test('names that PHP, Rack and qs read as email count as email', async t => {
  for (const name of ['email[]', 'email[0]', 'email%5B%5D', '[email]', '+email', '%09email', 'email%00x']) {
    t.equal(of(FORM, `${name}=${ADDRESS}`), ann, name)
    t.equal(of(undefined, '', `&${name}=${ADDRESS}`), ann, `${name} in the query`)
  }
  t.equal(of(FORM, `email[]=${ADDRESS}&email[]=q`), unclear)
  t.equal(
    of(FORM, `x=1;email=${ADDRESS}`),
    ann,
    'a semicolon that Rack 2 and old Python take for an ampersand',
  )
  t.equal(of(FORM, `email=${ADDRESS};x=1`), unclear)
  t.not(of(FORM, `?email=${ADDRESS}`), ann, 'a question mark belongs to the name')
  t.equal(of('application/json', `{"email":["${ADDRESS}"]}`), unclear, 'a list of one address')
  t.equal(of('application/json', `{"email":{"0":"${ADDRESS}"}}`), unclear)
})

t.test('JSON is read whatever its type says, as many upstreams do', async t => {
  const body = `{"email":"${ADDRESS}"}`
  for (const type of [
    undefined,
    FORM,
    'text/plain',
    'text/json',
    'application/vnd.api+json',
    'image/png',
    'x',
  ]) {
    t.equal(of(type, body), ann, `${type}`)
  }
  t.equal(of(`${FORM} x`, `email=${ADDRESS}`), ann, 'a type with more than its name')
  t.equal(of('text/plain', ' '.repeat(PEEK_BYTES)), unclear, 'what follows may be JSON')
  const [one, other] = [of('image/png', '\x89PNG\0'), of('image/png', '\x89PNG\0')]
  t.ok(one)
  t.not(one, other, 'other bodies do not share a counter')
  t.not(of('application/grpc', '\0'), of('application/grpc', '\0'))
})

t.test('multipart forms that upstreams split in several ways share one counter', async t => {
  const email = part('name="email"')
  t.equal(of(MULTIPART, `${email}--b0--\r\nepilogue`), ann)
  for (const name of ['email[]', ' email', '[email]'])
    t.equal(of(MULTIPART, `${part(`name="${name}"`)}--b0--`), ann, name)
  t.equal(
    of(MULTIPART, `--b0\r\n Content-Disposition: form-data;\x0bname="email"\r\n\r\n${ADDRESS}\r\n--b0--`),
    ann,
  )
  t.equal(of(MULTIPART, `x${email}--b0--`), ann, 'a boundary within a line, as Werkzeug reads it')
  t.equal(of(MULTIPART, `${email}--b0--`.replaceAll('\r\n', '\r')), ann)
  for (const [why, body] of Object.entries({
    'no end, which Django and PHP accept': email,
    'a part after the end, which PHP reads': `--b0--\r\n${email}--b0--`,
    'an end that is none for Go': `--b0--x\r\n${email}--b0--`,
    'an open quotation mark, which PHP closes': `${part('name="email')}--b0--`,
    'more parts than any form has': `${part('name=a', '').repeat(1001)}${email}--b0--`,
    'another boundary': email.replaceAll('b0', 'b1'),
  })) {
    t.equal(of(MULTIPART, body), unclear, why)
  }
  for (const parameters of [
    '',
    '; xboundary=b0',
    '; boundary="b0 "',
    '; boundary=b0,x',
    "; boundary*=utf-8''b0",
  ]) {
    t.equal(of(`multipart/form-data${parameters}`, `${email}--b0--`), unclear, parameters)
  }
  t.equal(of('multipart/form-data; boundary=boundary0', `${email}--b0--`.replaceAll('b0', 'boundary0')), ann)
})

t.test('a body that stalls until the gateway no longer waits shares one counter', async t => {
  for (const type of [FORM, MULTIPART, 'application/json', 'text/plain', undefined]) {
    t.equal(of(type, '', '', true), unclear, `${type}`)
  }
  t.equal(of(FORM, 'x=1', '', true), unclear)
  t.not(of('image/png', '\x89PNG', '', true), unclear, 'but not a slow upload without fields')
})
