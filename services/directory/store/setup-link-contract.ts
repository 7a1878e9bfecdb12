/** A set-up link as it is kept: by the hash of its token. Times are epoch ms. */
export interface SetupLink {
  readonly id: string
  readonly hash: string
  readonly directoryId: string
  readonly created: number
  /** When it ends. */
  readonly until: number
  /** When it showed the SCIM secret; absent before that. */
  readonly shown?: number
  /** New secrets that it made; absent: none. */
  readonly made?: number
}

/** What set-up links ask of a database; part of the Store. Times are epoch ms. */
export interface SetupLinkStore {
  /** Keeps a link, and forgets those that have ended. */
  addSetupLink(link: SetupLink, now: number): Promise<void>
  /** Undefined when there is none, or it has ended. */
  setupLink(hash: string, now: number): Promise<SetupLink | undefined>
  /** Those of a directory that have not ended, in order of creation. */
  setupLinks(directoryId: string, now: number): Promise<SetupLink[]>
  /** Writes down that the link shows the secret now. Of several that want it at once, in whatever process, one hears true. */
  showOnce(hash: string, now: number): Promise<boolean>
  /** Counts a new secret that the link makes. False, and nothing counted, when it has made `maxNewTokens`, in whatever process. */
  countNewSecret(hash: string, now: number): Promise<boolean>
  /** Ends all links of a directory, or the one with that id. Gives their number. */
  dropSetupLinks(directoryId: string, id?: string): Promise<number>
}
