/** The state of the last or current pull of an external directory. Times are ISO 8601, UTC. */
export interface PullState {
  readonly outcome: 'running' | 'complete' | 'incomplete' | 'refused' | 'failed'
  readonly started: string
  readonly finished: string | null
  /** What an operator needs to know, in sentences; null when all went well. */
  readonly problem: string | null
  /** Where the users came from in the last pull that could read them; null before that. */
  readonly usersFrom: 'users' | 'members' | null
  readonly counts: PullCounts
}

export interface PullCounts {
  readonly users: ResourceCounts
  readonly groups: ResourceCounts
  readonly memberships: { readonly added: number; readonly removed: number }
}

export interface ResourceCounts {
  readonly created: number
  readonly updated: number
  readonly deleted: number
}

/** A claim on one directory's pull. Times are epoch ms. */
export interface PullClaim {
  readonly now: number
  /** When the lease is to end. */
  readonly until: number
  /** Only if no pull began after this time. */
  readonly idleSince?: number | undefined
}

/** The database operations for pulls of external providers; part of the Store. */
export interface PullStore {
  /** Adds the directory to the list of those that are pulled, unless it is there already. */
  enlistPull(directoryId: string): Promise<void>
  pulledDirectories(): Promise<string[]>
  /**
   * Leases a directory's pull to this process and returns its fence; undefined when another process holds it, or it is
   * not due or not enlisted.
   */
  claimPull(directoryId: string, claim: PullClaim): Promise<number | undefined>
  /**
   * Stores the state and keeps the lease until that time (epoch ms; 0 gives it back). False, with nothing changed,
   * when another process has taken the lease.
   */
  reportPull(
    directoryId: string,
    fence: number,
    report: { until: number; state: PullState },
  ): Promise<boolean>
  /** By directory, without those never pulled. `until` is the end of the last lease (epoch ms). */
  pullStates(
    directoryIds: readonly string[],
  ): Promise<Map<string, { readonly state: PullState; readonly until: number }>>
}
