/** A stored one-time link to a directory's consent; its token is kept as a hash only. */
export interface ConsentLink {
  readonly hash: string
  readonly directoryId: string
  /** Expiry (epoch ms). */
  readonly until: number
}

/** The database operations for one-time links; part of the Store. Times are epoch ms. */
export interface LinkStore {
  /** Stores a link and deletes expired ones. */
  addLink(link: ConsentLink, now: number): Promise<void>
  /** Undefined when there is none or it has expired. */
  link(hash: string, now: number): Promise<ConsentLink | undefined>
  /** Deletes the link. Of several concurrent callers, in any process, only one gets true. */
  takeLink(hash: string, now: number): Promise<boolean>
  /** Deletes all links of a directory. */
  dropLinks(directoryId: string): Promise<void>
}
