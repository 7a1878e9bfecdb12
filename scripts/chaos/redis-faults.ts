/** Faults of Redis, and what is promised during each. */
import { setTimeout as sleep } from 'node:timers/promises'
import { hashSlot } from '../../gateway/decide/redis/hash-slot.js'
import type { Fault } from '../../test/helpers/faults.js'
import { waitUntil } from '../../test/helpers/wait.js'
import { inSync, type Node, type RedisForm } from './redis-forms.js'

/** How many percent of the quota may be admitted beyond it. */
interface Promised {
  readonly overPercent: number
}

/** Where a fault happens: `node` is the master. */
export interface At {
  readonly form: RedisForm
  readonly node: Node
  readonly project: string
}

export interface RedisFault {
  readonly promise: Promised
  begin(at: At): unknown
  /** Without it the gateways have to recover by themselves. */
  end?(at: At): unknown
  /** Repairs before the next fault. */
  after?(at: At): unknown
  /** Those that can have it, when not all can. */
  readonly forms?: readonly string[]
  readonly lastsMs?: number
  readonly backWithinMs?: number
}

/** Counting continues in Redis: not one request too many is admitted. */
const EXACT: Promised = { overPercent: 0 }
/**
 * Each of the two gateways continues with its share of what was left; counts that one of them missed are at most its
 * share.
 */
const SHARE: Promised = { overPercent: 50 }
/** A Redis that has lost its data counts from zero. */
const ANEW: Promised = { overPercent: 100 }

const on = (fault: Fault, promise = SHARE): RedisFault => ({
  promise,
  begin: ({ node }) => node.proxy.set(fault),
  end: ({ node }) => node.proxy.set({ kind: 'pass' }),
})

/** A master that has come back is a master; its replica has to follow it again. */
const resync = async ({ form }: At) => form.replica && inSync(await form.replica())

export const FAULTS: Record<string, RedisFault> = {
  'latency 5 ms': on({ kind: 'latency', ms: 5 }, EXACT),
  'latency 30 ms': on({ kind: 'latency', ms: 30 }, EXACT),
  'latency 200 ms': on({ kind: 'latency', ms: 200 }),
  'black hole': on({ kind: 'blackhole' }),
  reset: on({ kind: 'reset' }),
  'half-open': on({ kind: 'halfopen' }),
  'CLIENT PAUSE': {
    promise: SHARE,
    begin: ({ node }) => node.admin.call('CLIENT', 'PAUSE', 2000, 'ALL'),
    end: () => undefined,
  },
  'DEBUG SLEEP': {
    promise: SHARE,
    begin: ({ node }) => void node.admin.call('DEBUG', 'SLEEP', 1.9).catch(() => undefined),
    end: () => undefined,
  },
  'restart, empty': {
    promise: ANEW,
    async begin({ node }) {
      await node.kill()
      await sleep(500)
      await node.restart()
    },
    end: () => undefined,
    after: resync,
  },
  'read-only replica': {
    forms: ['single', 'tls', 'sentinel'],
    promise: SHARE,
    begin: ({ node }) => node.admin.replicaof('127.0.0.1', 1),
    end: ({ node }) => node.admin.replicaof('NO', 'ONE'),
    after: resync,
  },
  'out of memory': {
    promise: SHARE,
    begin: ({ node }) => node.admin.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', 1),
    end: ({ node }) => node.admin.config('SET', 'maxmemory', 0),
  },
  'SCRIPT FLUSH': {
    promise: EXACT,
    async begin({ node }) {
      for (let i = 0; i < 10; i += 1) {
        await node.admin.script('FLUSH')
        await sleep(100)
      }
    },
    end: () => undefined,
  },
  'busy script, SCRIPT KILL': {
    promise: SHARE,
    async begin({ node }) {
      await node.admin.config('SET', 'busy-reply-threshold', 200)
      const busy = node.admin.duplicate()
      busy.on('error', () => undefined)
      busy.eval('while true do end', 0).catch(() => busy.disconnect())
    },
    // A Redis that was demoted in the meantime has already killed the script.
    end: ({ node }) => node.admin.script('KILL').catch(() => undefined),
  },
  'SENTINEL FAILOVER': {
    forms: ['sentinel'],
    promise: SHARE,
    lastsMs: 0,
    backWithinMs: 15_000,
    begin: ({ form }) => failOver(form, () => form.sentinel?.admin.call('SENTINEL', 'FAILOVER', 'main')),
    after: resync,
  },
  'replica promoted': {
    forms: ['cluster'],
    promise: SHARE,
    lastsMs: 0,
    backWithinMs: 15_000,
    begin: ({ form }) => failOver(form, replica => replica.admin.call('CLUSTER', 'FAILOVER')),
    after: resync,
  },
  'slot moved': {
    forms: ['cluster'],
    promise: SHARE,
    begin: moveSlot,
    end: () => undefined,
  },
  'master killed': {
    forms: ['sentinel', 'cluster'],
    promise: SHARE,
    lastsMs: 0,
    backWithinMs: 20_000,
    begin: ({ node }) => node.kill(),
    async after(at) {
      await at.node.restart()
      await resync(at)
    },
  },
}

/** Runs the command and waits until the replica is the master. */
async function failOver(form: RedisForm, command: (replica: Node) => unknown): Promise<void> {
  const replica = await form.replica?.()
  if (replica === undefined) throw new Error('there is no replica')
  await command(replica)
  await waitUntil('the replica to be master', () => replica.isMaster(), 15_000)
}

/** Moves the slot key by key to the second master, as `redis-cli --cluster reshard` does. */
async function moveSlot({ form, node, project }: At): Promise<void> {
  const slot = hashSlot(`{${project}}`)
  const [to, ...rest] = form.others ?? []
  if (to === undefined) throw new Error('there is no other master')
  const [fromId, toId] = [await node.admin.cluster('MYID'), await to.admin.cluster('MYID')]
  await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId)
  await node.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId)
  for (;;) {
    const keys = (await node.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[]
    if (keys.length === 0) break
    await node.admin.call('MIGRATE', '127.0.0.1', to.directPort, '', 0, 1000, 'KEYS', ...keys)
  }
  for (const { admin } of [to, node, ...rest]) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
  form.moved?.add(slot)
}
