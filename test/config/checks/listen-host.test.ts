/** Which texts name a listener's host, and which of them are the same address. */
import t from 'tap'
import {
  hostMeantBy,
  isListenHost,
  isLoopback,
  isSameAddress,
  reaches,
} from '../../../config/checks/listen-host.js'

t.test('a host is an address or a name, and nothing around it', async t => {
  for (const host of ['127.0.0.1', '127.1', '0', '::', '::1', 'fe80::1%eth0', 'localhost', 'a_b.example.'])
    t.ok(isListenHost(host), host)
  const meant = {
    '[::1]': '::1',
    '[::1]:80': '::1',
    '127.0.0.1:8080': '127.0.0.1',
    'http://localhost:1': 'localhost',
    '127.0.0.1 ': '127.0.0.1',
    '/run/sluice.sock': undefined,
    '1.2.3.400': undefined,
    '': undefined,
  }
  for (const [text, host] of Object.entries(meant)) {
    t.notOk(isListenHost(text), text)
    t.equal(hostMeantBy(text), host, text)
  }
})

t.test('one address has many spellings', async t => {
  for (const host of [
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    'LOCALHOST',
    '::ffff:127.0.0.1',
    '::1',
    '0:0:0:0:0:0:0:1',
  ])
    t.ok(isLoopback(host), host)
  for (const host of ['0.0.0.0', '0', '::', '10.0.0.1', '::ffff:10.0.0.1', 'host.example', '1270.0.0.1'])
    t.notOk(isLoopback(host), host)
  const same = ['127.0.0.1 127.1', '0 10.0.0.1', '::0 10.0.0.1', '0:0::0 ::1', 'A.example a.example']
  const different = ['127.0.0.1 ::1', '127.0.0.1 127.0.0.2', '0.0.0.0 ::1', 'a.example b.example']
  for (const pair of same) t.ok(isSameAddress(...(pair.split(' ') as [string, string])), pair)
  for (const pair of different) t.notOk(isSameAddress(...(pair.split(' ') as [string, string])), pair)
})

t.test('a connection comes to a listener on its address, or on all addresses of this machine', async t => {
  const to = [
    'localhost ::1',
    '127.0.0.1 0.0.0.0',
    '127.0.0.1 ::',
    '0.0.0.0 127.0.0.1',
    '::1 ::',
    '10.0.0.5 10.0.0.5',
  ]
  const past = ['127.0.0.1 10.0.0.5', '10.0.0.9 0.0.0.0', '::1 0.0.0.0', 'app.example 0.0.0.0']
  for (const pair of to) t.ok(reaches(...(pair.split(' ') as [string, string])), pair)
  for (const pair of past) t.notOk(reaches(...(pair.split(' ') as [string, string])), pair)
})
