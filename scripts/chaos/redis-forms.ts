/** Redis in all its forms, each node behind a proxy. */
import { Redis } from 'ioredis'
import { hashSlot } from '../../gateway/decide/redis/hash-slot.js'
import { makeCertificate } from '../../test/helpers/certificates.js'
import { freePort } from '../../test/helpers/child-server.js'
import { type FaultProxy, faultProxy } from '../../test/helpers/faults.js'
import {
  type RedisServer,
  startCluster,
  startOneNodeCluster,
  startRedis,
  startSentinel,
} from '../../test/helpers/redis.js'
import { type Scope, temporaryFolder } from '../../test/helpers/scope.js'
import { waitUntil } from '../../test/helpers/wait.js'
import { BY_CLIENT, POLICIES } from './redis-setup.js'

const DEBUG = ['--enable-debug-command', 'local']
const SLOTS = 16_384
/** A Sentinel turns a master that has come back into a replica after it has checked twice. */
const ROLES_WITHIN_MS = 40_000

/** One Redis behind a proxy that can disturb its connections. */
export interface Node {
  readonly proxy: FaultProxy
  /** A direct connection to control it. */
  readonly admin: Redis
  /** Where clients connect: the proxy. */
  readonly port: number
  /** Bypasses the proxy. */
  readonly directPort: number
  kill(): Promise<void>
  /** Starts the server again, empty. */
  restart(): Promise<void>
  isMaster(): Promise<boolean>
}

export interface RedisForm {
  /** What the gateway is given. */
  readonly url: string
  /** For its process. */
  readonly env: Record<string, string>
  readonly policies?: Readonly<Record<string, string>>
  /** Where it differs from the default. */
  readonly backWithinMs?: number
  /** The node that counts now. */
  master(): Promise<Node>
  replica?(): Promise<Node>
  /** Whether that node holds a project's counters. */
  counts(project: string): boolean
  readonly sentinel?: Node
  /** The other masters of a Cluster, and the slots that were moved to them. */
  readonly others?: readonly Node[]
  readonly moved?: Set<number>
}

export const FORMS: Record<string, (t: Scope) => Promise<RedisForm>> = {
  async single(t) {
    const node = await behindProxy(t, await startRedis(...DEBUG))
    return alone(node, `redis://127.0.0.1:${node.port}`)
  },

  /** Reached like one server, but a script over two slots is refused; a second rule makes each request need two. */
  async 'one address'(t) {
    const node = await behindProxy(t, await startOneNodeCluster(...DEBUG))
    return { ...alone(node, `redis://127.0.0.1:${node.port}`), policies: { ...POLICIES, ...BY_CLIENT } }
  },

  async tls(t) {
    const { certFile, keyFile } = makeCertificate(temporaryFolder(t, 'chaos-tls'), 'redis')
    const port = await freePort()
    const server = await startRedis(
      ...DEBUG,
      ...['--tls-port', String(port), '--tls-cert-file', certFile, '--tls-key-file', keyFile],
      ...['--tls-ca-cert-file', certFile, '--tls-auth-clients', 'no'],
    )
    const node = await behindProxy(t, server, { port })
    return alone(node, `rediss://127.0.0.1:${node.port}`, { NODE_EXTRA_CA_CERTS: certFile })
  },

  async sentinel(t) {
    const announce = { 'replica-announce-ip': () => '127.0.0.1', 'replica-announce-port': String }
    const start = async () => behindProxy(t, await startRedis(...DEBUG), { announce })
    const [master, replica] = await Promise.all([start(), start()])
    await replica.admin.replicaof('127.0.0.1', master.port)
    await inSync(replica)
    const sentinel = await behindProxy(t, await startSentinel({ port: master.port }))
    const isKnown = async () => {
      const [known] = (await sentinel.admin.call('SENTINEL', 'REPLICAS', 'main')) as string[][]
      return known?.includes('ok')
    }
    await waitUntil('the Sentinel to know the replica', isKnown, 15_000)
    return {
      url: `redis+sentinel://127.0.0.1:${sentinel.port}/main`,
      env: {},
      // A fault may last longer than a Sentinel waits before it looks for another master.
      backWithinMs: 20_000,
      sentinel,
      master: () => whichIs([master, replica], true),
      replica: () => whichIs([master, replica], false),
      counts: () => true,
    }
  },

  async cluster(t) {
    const cluster = await startCluster(...DEBUG)
    const start = (server: RedisServer) =>
      behindProxy(t, server, { announce: { 'cluster-announce-port': String } })
    const masters = await Promise.all(cluster.masters.map(start))
    const replica = await start(cluster.replica)
    const [first, ...others] = masters as [Node, ...Node[]]
    const nodes = [...masters, replica]
    const moved = new Set<number>()
    await Promise.all(
      nodes.map(({ admin }) =>
        waitUntil('the nodes to know the proxies', async () => {
          const known = (await admin.cluster('NODES')) as string
          return nodes.every(({ port }) => known.includes(`:${port}@`))
        }),
      ),
    )
    await inSync(replica)
    return {
      url: `redis+cluster://${masters.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      env: {},
      others,
      moved,
      master: () => whichIs([first, replica], true),
      replica: () => whichIs([first, replica], false),
      counts(project) {
        const slot = hashSlot(`{${project}}`)
        return slot < SLOTS / 3 - 1 && !moved.has(slot)
      },
    }
  },
}

function alone(node: Node, url: string, env = {}): RedisForm {
  return { url, env, master: async () => node, counts: () => true }
}

interface NodeSettings {
  /** Settings that make other nodes use the proxy's port instead of the server's. */
  readonly announce?: Readonly<Record<string, (port: number) => string>>
  /** Where clients connect, when that is not the server's plain port. */
  readonly port?: number
}

async function behindProxy(t: Scope, server: RedisServer, settings: NodeSettings = {}): Promise<Node> {
  const { announce = {}, port = server.port } = settings
  t.teardown(() => server.stop())
  const proxy = await faultProxy(port)
  t.teardown(() => proxy.stop())
  const admin = new Redis(server.port, '127.0.0.1', {
    maxRetriesPerRequest: null,
    enableReadyCheck: false,
    retryStrategy: () => 50,
  })
  admin.on('error', () => undefined)
  t.teardown(() => admin.disconnect())
  const introduce = async () => {
    for (const [name, textOf] of Object.entries(announce)) {
      await admin.config('SET', name, textOf(proxy.port))
    }
  }
  await introduce()
  return {
    proxy,
    admin,
    port: proxy.port,
    directPort: server.port,
    kill: server.kill,
    async restart() {
      await server.restart()
      await introduce()
    },
    isMaster: async () => /role:master/.test(await admin.info('replication')),
  }
}

/** Waits until one of the two nodes is master and the other is not; returns the one that is asked for. */
function whichIs(nodes: readonly [Node, Node], master: boolean): Promise<Node> {
  const roles = async () => {
    const [first, second] = await Promise.all([nodes[0].isMaster(), nodes[1].isMaster()])
    return first !== second && (first === master ? nodes[0] : nodes[1])
  }
  return waitUntil(master ? 'a master' : 'a replica', roles, ROLES_WITHIN_MS)
}

export async function inSync(replica: Node): Promise<void> {
  const isLinked = async () => /master_link_status:up/.test(await replica.admin.info('replication'))
  await waitUntil('the replica to be in sync', isLinked, ROLES_WITHIN_MS)
}
