/** How the last pull of an external provider's directory went, or goes. Times are ISO 8601, UTC. */
export interface PullState {
  readonly outcome: 'running' | 'complete' | 'incomplete' | 'refused' | 'failed'
  readonly started: string
  readonly finished: string | null
  /** What an operator has to know, in a sentence; null when all went well. */
  readonly problem: string | null
  readonly counts: PullCounts
}

/** What a pull has changed so far. */
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

/** Asks for one directory's pull. Times are epoch ms. */
export interface PullClaim {
  readonly now: number
  /** Until when the lease is wanted. */
  readonly until: number
  /** Only if no pull began after this time. */
  readonly idleSince?: number | undefined
}

/** What pulls of external providers ask of a database; part of the Store. */
export interface PullStore {
  /** Takes the directory into the list of those that are pulled, if it is not there yet. */
  enlistPull(directoryId: string): Promise<void>
  pulledDirectories(): Promise<string[]>
  /** Leases a directory's pull to this process and gives its fence; undefined when it is another's, not due or not enlisted. */
  claimPull(directoryId: string, claim: PullClaim): Promise<number | undefined>
  /** Keeps the lease until that time (epoch ms; 0 gives it back). False, and nothing changed, when it is another process's meanwhile. */
  reportPull(
    directoryId: string,
    fence: number,
    report: { until: number; state: PullState },
  ): Promise<boolean>
  /** By directory; those never pulled are left out. `until` is the end of the last lease (epoch ms). */
  pullStates(
    directoryIds: readonly string[],
  ): Promise<Map<string, { readonly state: PullState; readonly until: number }>>
}
