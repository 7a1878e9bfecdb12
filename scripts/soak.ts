/**
 * `npm run soak [-- --seconds 60 --leg tls]`: aborts, resets, slow readers, WebSockets, slots, reloads and a Redis that
 * pauses and dies, against the built gateway in each of its forms, which share the seconds. Prints what each process
 * holds before and after, and fails if it has grown.
 */
import { parseArgs } from 'node:util'
import { makeCertificate } from '../test/helpers/certificates.js'
import { type Scope, scoped, temporaryFolder } from '../test/helpers/scope.js'
import { Failure, onPath, say, script } from './lib/run.mjs'
import { startGateway, startSoakedRedis } from './soak/gateway.js'
import { manyHosts } from './soak/hosts.js'
import { soak } from './soak/leg.js'
import { startUpstream } from './soak/upstream.js'

/** By name: what `listen` has besides host and port, and what is done. */
const LEGS: Record<string, { listen: (t: Scope) => object; act: typeof soak }> = {
  plain: { listen: () => ({}), act: soak },
  tls: { listen: t => ({ tls: certificate(t) }), act: soak },
  workers: { listen: () => ({ workers: 2 }), act: soak },
  'workers-tls': { listen: t => ({ workers: 2, tls: certificate(t) }), act: soak },
  hosts: { listen: () => ({}), act: manyHosts },
}

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '600' }, leg: { type: 'string', multiple: true } },
})
const seconds = Number(values.seconds)
const legs = values.leg ?? Object.keys(LEGS)

await script(async () => {
  if (!(seconds > 0)) throw new Failure('--seconds takes a positive number')
  const unknown = legs.find(leg => !Object.hasOwn(LEGS, leg))
  if (unknown !== undefined) throw new Failure(`--leg takes ${Object.keys(LEGS).join(', ')}; not ${unknown}`)
  for (const name of ['redis-server', 'openssl'])
    if (!onPath(name)) throw new Failure(`The soak needs ${name}: apt-get install ${name}`)
  for (const leg of legs) {
    const { listen, act } = LEGS[leg] as (typeof LEGS)[string]
    say(`${leg}:`)
    await scoped(async t => {
      const redis = await startSoakedRedis(t)
      const gateway = await startGateway(t, { upstream: await startUpstream(t), redis, listen: listen(t) })
      await act(gateway, redis, seconds / legs.length)
    })
  }
})

/** A new certificate, as gateway.yaml refers to it. */
function certificate(t: Scope) {
  const { certFile: cert, keyFile: key } = makeCertificate(temporaryFolder(t, 'soak'), 'soak.localhost')
  return { cert, key }
}
