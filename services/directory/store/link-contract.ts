/** A stored one-time link to a directory's consent; its token is kept as a hash only. */
export interface ConsentLink {
  readonly hash: string
  readonly directoryId: string
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
  dropLinks(directoryId: string): Promise<void>
}

/** A stored set-up link; its token is kept as a hash only. Times are epoch ms. */
export interface SetupLink {
  readonly id: string
  readonly hash: string
  readonly directoryId: string
  readonly created: number
  /** Expiry. */
  readonly until: number
  /** When it showed the SCIM secret; absent before that. */
  readonly shown?: number
  /** Number of new secrets made through it; absent: none. */
  readonly made?: number
}

/** The database operations for set-up links; part of the Store. Times are epoch ms. */
export interface SetupLinkStore {
  /**
   * Stores a link and deletes expired ones. False, with nothing stored, when the directory would have more than
   * `maxSetupLinks`; of several made at once for the last place, perhaps none is stored.
   */
  addSetupLink(link: SetupLink, now: number): Promise<boolean>
  /** Undefined when there is none or it has expired. */
  setupLink(hash: string, now: number): Promise<SetupLink | undefined>
  /** The unexpired links of a directory, in order of creation. */
  setupLinks(directoryId: string, now: number): Promise<SetupLink[]>
  /** Records that the link shows the secret now. Of several concurrent callers, in any process, only one gets true. */
  showOnce(hash: string, now: number): Promise<boolean>
  /**
   * Counts a new secret made through the link. False, with nothing counted, once it has made `maxNewTokens`, across
   * all processes.
   */
  countNewSecret(hash: string, now: number): Promise<boolean>
  /** Ends all links of a directory, or the one with that id. Returns how many. */
  dropSetupLinks(directoryId: string, id?: string): Promise<number>
}
