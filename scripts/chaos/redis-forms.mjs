/** Redis in all its forms, each node behind a proxy. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashSlot } from '../../dist/gateway/decide/redis/hash-slot.js'
import { makeCertificate } from '../../dist/test/helpers/certificates.js'
import { freePort } from '../../dist/test/helpers/child-server.js'
import {
  startCluster,
  startOneNodeCluster,
  startRedis,
  startSentinel,
} from '../../dist/test/helpers/redis.js'
import { waitUntil } from '../../dist/test/helpers/wait.js'
import { behindProxy } from './redis-node.mjs'
import { BY_CLIENT, POLICIES } from './settings.mjs'

const DEBUG = ['--enable-debug-command', 'local']
const SLOTS = 16_384
/** A Sentinel turns a master that has come back into a replica after it has checked twice. */
const ROLES_WITHIN_MS = 40_000

/**
 * By name, how to start one. Each has the `url` that the gateway is given, `env` for its process, `master()` (the node
 * that counts now), `counts(project)` (whether that node keeps a project's counters), `stop`, and depending on the form
 * `replica()`, `sentinel`, or `nodes` and `others`. `backWithinMs` and `policies` are set where they differ from the
 * defaults.
 */
export const FORMS = {
  async single() {
    const node = await behindProxy(await startRedis(...DEBUG))
    return alone(node, `redis://127.0.0.1:${node.port}`)
  },

  /** Reached like one server, but a script over two slots is refused; a second rule makes each request need two. */
  async 'one address'() {
    const node = await behindProxy(await startOneNodeCluster(...DEBUG))
    return { ...alone(node, `redis://127.0.0.1:${node.port}`), policies: { ...POLICIES, ...BY_CLIENT } }
  },

  async tls() {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-chaos-tls-'))
    const { certFile, keyFile } = makeCertificate(folder, 'redis')
    const port = await freePort()
    const server = await startRedis(
      ...DEBUG,
      ...['--tls-port', String(port), '--tls-cert-file', certFile, '--tls-key-file', keyFile],
      ...['--tls-ca-cert-file', certFile, '--tls-auth-clients', 'no'],
    )
    const node = await behindProxy(server, { port })
    const form = alone(node, `rediss://127.0.0.1:${node.port}`, { NODE_EXTRA_CA_CERTS: certFile })
    return {
      ...form,
      async stop() {
        await form.stop()
        rmSync(folder, { recursive: true })
      },
    }
  },

  async sentinel() {
    const announce = port => [
      ['replica-announce-ip', '127.0.0.1'],
      ['replica-announce-port', port],
    ]
    const nodes = await Promise.all(
      [0, 1].map(async () => behindProxy(await startRedis(...DEBUG), { announce })),
    )
    const [master, replica] = nodes
    await replica.admin.replicaof('127.0.0.1', master.port)
    await inSync(replica)
    const sentinel = await behindProxy(await startSentinel({ port: master.port }))
    await waitUntil(
      'the Sentinel to know the replica',
      async () => {
        const [known] = await sentinel.admin.call('SENTINEL', 'REPLICAS', 'main')
        return known?.includes('ok')
      },
      15_000,
    )
    return {
      url: `redis+sentinel://127.0.0.1:${sentinel.port}/main`,
      env: {},
      // A fault may last longer than a Sentinel waits before it looks for another master.
      backWithinMs: 20_000,
      sentinel,
      master: () => whichIs(nodes, true),
      replica: () => whichIs(nodes, false),
      counts: () => true,
      stop: async () => void (await Promise.all([sentinel, ...nodes].map(node => node.stop()))),
    }
  },

  async cluster() {
    const cluster = await startCluster(...DEBUG)
    const announce = port => [['cluster-announce-port', port]]
    const servers = [...cluster.masters, cluster.replica]
    const nodes = await Promise.all(servers.map(server => behindProxy(server, { announce })))
    const [first, ...others] = nodes
    const pair = [first, others.pop()]
    const moved = new Set()
    await Promise.all(
      nodes.map(({ admin }) =>
        waitUntil('the nodes to know the proxies', async () => {
          const told = await admin.cluster('NODES')
          return nodes.every(({ port }) => told.includes(`:${port}@`))
        }),
      ),
    )
    await inSync(pair[1])
    return {
      url: `redis+cluster://${[first, ...others].map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      env: {},
      nodes,
      others,
      moved,
      master: () => whichIs(pair, true),
      replica: () => whichIs(pair, false),
      counts(project) {
        const slot = hashSlot(`{${project}}`)
        return slot < SLOTS / 3 - 1 && !moved.has(slot)
      },
      stop: async () => void (await Promise.all(nodes.map(node => node.stop()))),
    }
  },
}

function alone(node, url, env = {}) {
  return { url, env, master: async () => node, counts: () => true, stop: () => node.stop() }
}

/** Waits until one of the two nodes is master and the other is not; returns the one that is asked for. */
function whichIs(nodes, master) {
  return waitUntil(
    master ? 'a master' : 'a replica',
    async () => {
      const roles = await Promise.all(nodes.map(node => node.isMaster()))
      return roles[0] !== roles[1] && nodes[roles.indexOf(master)]
    },
    ROLES_WITHIN_MS,
  )
}

export function inSync(replica) {
  const isLinked = async () => /master_link_status:up/.test(await replica.admin.info('replication'))
  return waitUntil('the replica to be in sync', isLinked, ROLES_WITHIN_MS)
}
