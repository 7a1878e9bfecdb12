/** What the clients of both protocols have in common. */

/** The project's host. */
export const HOST = 'soak.localhost'

/** A whole number below `bound`. */
export const below = (bound: number): number => Math.floor(Math.random() * bound)

export const oneOf = <T>(list: readonly T[]): T => list[below(list.length)] as T

/** One of twenty client addresses: all of 127/8 is this machine. */
export const anyAddress = (): string => `127.0.0.${1 + below(20)}`

export interface Client {
  readonly name: string
  /** How many do it at a time. */
  readonly many: number
  /** Its requests may be retried, and must all get a 200. */
  readonly isHonest?: boolean
  /** Does one thing once, and releases what it took; resolves to the status, 0 when it was cut. */
  act(): Promise<number | undefined>
}

export interface Clients {
  readonly clients: readonly Client[]
  /** Closes what they keep open. */
  close(): void
}

export interface AskOptions {
  readonly method?: string
  readonly body?: string
  /** Milliseconds after which the client gives up. */
  readonly leaveAfter?: number
  /** Whether it reads slowly. */
  readonly pauses?: boolean
}
