/** Faults of Redis, and what is promised during each. */
import { setTimeout as sleep } from 'node:timers/promises'
import { hashSlot } from '../../dist/gateway/decide/redis/hash-slot.js'
import { waitUntil } from '../../dist/test/helpers/wait.js'
import { inSync } from './redis-forms.mjs'
import { BURST, DEADLINE_MS, QUOTA } from './settings.mjs'

/** Counting continues in Redis: not one request too many is admitted. */
const EXACT = { overPercent: 0 }
/**
 * Each of the two gateways continues with its share of what was left; counts that one of them missed are at most its
 * share.
 */
const SHARE = { overPercent: 50 }
/** A Redis that has lost its data counts from zero. */
const ANEW = { overPercent: 100 }

const on = (fault, promise = SHARE) => ({
  promise,
  begin: async ({ node }) => void (await node.proxy.set(fault)),
  end: ({ node }) => node.proxy.set({ kind: 'pass' }),
})

/**
 * By name: `begin` and `end` (without `end` the gateways have to recover by themselves), `after` for repairs before the
 * next fault, `promise`, and `forms` when not all forms can have it. The functions get `form`, `node` (the master),
 * `project`.
 */
export const FAULTS = {
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
    after: async ({ form }) => form.replica && inSync(await form.replica()),
  },
  'read-only replica': {
    forms: ['single', 'tls', 'sentinel'],
    promise: SHARE,
    begin: ({ node }) => node.admin.replicaof('127.0.0.1', 1),
    end: ({ node }) => node.admin.replicaof('NO', 'ONE'),
    after: async ({ form }) => form.replica && inSync(await form.replica()),
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
    begin: ({ form }) => failOver(form, () => form.sentinel.admin.call('SENTINEL', 'FAILOVER', 'main')),
    after: async ({ form }) => inSync(await form.replica()),
  },
  'replica promoted': {
    forms: ['cluster'],
    promise: SHARE,
    lastsMs: 0,
    backWithinMs: 15_000,
    begin: ({ form }) => failOver(form, replica => replica.admin.call('CLUSTER', 'FAILOVER')),
    after: async ({ form }) => inSync(await form.replica()),
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
    async after({ form, node }) {
      await node.restart()
      await inSync(await form.replica())
    },
  },
}

/** Runs the command and waits until the replica is the master. */
async function failOver(form, command) {
  const replica = await form.replica()
  await command(replica)
  await waitUntil('the replica to be master', () => replica.isMaster(), 15_000)
}

/** Moves the slot key by key to the second master, as `redis-cli --cluster reshard` does. */
async function moveSlot({ form, node, project }) {
  const slot = hashSlot(`{${project}}`)
  const [to] = form.others
  const [fromId, toId] = await Promise.all([node, to].map(({ admin }) => admin.cluster('MYID')))
  await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId)
  await node.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId)
  for (;;) {
    const keys = await node.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)
    if (keys.length === 0) break
    await node.admin.call('MIGRATE', '127.0.0.1', to.directPort, '', 0, 1000, 'KEYS', ...keys)
  }
  for (const { admin } of [to, node, ...form.others.slice(1)]) {
    await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
  }
  form.moved.add(slot)
}

/** The setup, as the page describes it. */
export const SETTINGS = `a deadline of ${DEADLINE_MS} ms, \`onError: local\`, \`instances: 2\`; ${QUOTA} requests a minute with a burst of ${BURST} a second`
