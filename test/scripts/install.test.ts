import { pathToFileURL } from 'node:url'
import t from 'tap'
import { inProject } from '../helpers/root.js'

t.test('without a network the first start says what is missing, and shows no stack trace', async t => {
  const { installFault } = await import(pathToFileURL(inProject('scripts', 'lib', 'install.mjs')).href)
  const offline = `npm error code ECONNREFUSED
npm error syscall connect
npm error FetchError: request to http://127.0.0.1:9/yoga-layout failed, reason: connect ECONNREFUSED 127.0.0.1:9
npm error     at ClientRequest.<anonymous> (/usr/lib/node_modules/npm/node_modules/minipass-fetch/lib/index.js:130:14)
`
  const told = installFault(offline)
  t.match(told, 'npm cannot reach its registry (ECONNREFUSED)')
  t.match(told, 'connect to the network')
  t.notMatch(told, 'at ClientRequest')
  t.match(installFault('npm error code EAI_AGAIN\nnpm error errno EAI_AGAIN'), '(EAI_AGAIN)')
  t.match(
    installFault('npm error code EUSAGE\nnpm error in sync'),
    'EUSAGE',
    'an unknown fault of npm is shown as it is',
  )
})
