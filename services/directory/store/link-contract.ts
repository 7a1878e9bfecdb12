/** A one-time link to a directory's consent, as it is kept: by the hash of its token. */
export interface ConsentLink {
  readonly hash: string
  readonly directoryId: string
  /** When it ends (epoch ms). */
  readonly until: number
}

/** What one-time links ask of a database; part of the Store. Times are epoch ms. */
export interface LinkStore {
  /** Keeps a link, and forgets those that have ended. */
  addLink(link: ConsentLink, now: number): Promise<void>
  /** Undefined when there is none, or it has ended. */
  link(hash: string, now: number): Promise<ConsentLink | undefined>
  /** Takes the link away. Of several that want it at once, in whatever process, one hears true. */
  takeLink(hash: string, now: number): Promise<boolean>
  /** Takes away all links of a directory. */
  dropLinks(directoryId: string): Promise<void>
}
