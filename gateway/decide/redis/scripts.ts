/** The scripts of `lua/` as commands of a connection. */
import { readFileSync } from 'node:fs'
import type { Result } from 'ioredis'
import type { RedisClient } from './connection.js'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    take(keyCount: number, ...keysAndArgs: (string | number)[]): Result<number[], Context>
    peek(keyCount: number, ...keysAndArgs: (string | number)[]): Result<number[], Context>
    refund(keyCount: number, ...keysAndArgs: (string | number)[]): Result<null, Context>
    settle(keyCount: number, ...keysAndArgs: (string | number)[]): Result<number, Context>
    confirm(keyCount: number, ...keysAndArgs: (string | number)[]): Result<null, Context>
    lease(key: string, ...args: (string | number)[]): Result<number[], Context>
    peekLease(key: string, ...args: (string | number)[]): Result<number[], Context>
    reset(keyCount: number, ...keysAndArgs: (string | number)[]): Result<null, Context>
    credit(keyCount: number, ...keysAndArgs: (string | number)[]): Result<[string, string], Context>
    renew(key: string, member: string, ttlUs: number): Result<number, Context>
  }
}

/** The files of each script, the libraries it needs first. The names of those that count one key end in `-1`. */
const SCRIPTS: Readonly<Record<string, readonly string[]>> = {
  take: ['algorithms', 'window', 'meter', 'take'],
  peek: ['read-only', 'algorithms', 'window', 'meter', 'take'],
  refund: ['algorithms', 'window', 'meter', 'refund'],
  settle: ['algorithms', 'window', 'meter', 'settle'],
  confirm: ['algorithms', 'window', 'meter', 'confirm'],
  lease: ['algorithms', 'window', 'lease-1'],
  peekLease: ['read-only', 'algorithms', 'window', 'lease-1'],
  reset: ['reset'],
  credit: ['credit'],
  renew: ['renew-slot-1'],
}

/** Defines every script as a command. */
export function defineScripts(client: RedisClient): void {
  for (const [name, files] of Object.entries(SCRIPTS)) {
    const lua = files.map(textOf).join('\n')
    client.defineCommand(name, files.at(-1)?.endsWith('-1') ? { numberOfKeys: 1, lua } : { lua })
  }
}

function textOf(file: string): string {
  return readFileSync(new URL(`./lua/${file}.lua`, import.meta.url), 'utf8')
}
