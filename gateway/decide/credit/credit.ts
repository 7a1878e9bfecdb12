/** Credit: what operators add to the lifetime windows of a project. Kept beside its counters, but not reset with them. */

/** Credit as it was asked for. */
export interface CreditEntry {
  readonly bucket: string
  readonly window: string
  /** A whole number; negative takes back what was given. */
  readonly amount: number
  readonly why: string
  readonly by: string
  /** ISO 8601. */
  readonly at: string
}

/** Credit that was added. */
export interface AddedCredit extends CreditEntry {
  /** All credit of the window after it. */
  readonly credit: number
}

export interface NewCredit {
  /** The counter key of the bucket. */
  readonly key: string
  readonly entry: CreditEntry
  /** The most that the window's credit may become. */
  readonly most: number
  /** The same id adds only once. */
  readonly id?: string | undefined
}

/** `repeated`: the id has added this entry before. `beyond`: it would be less than nothing, or more than the most. */
export type CreditAnswer =
  | { readonly result: 'added' | 'repeated'; readonly entry: AddedCredit }
  | { readonly result: 'beyond'; readonly credit: number }

export interface CreditStore {
  /** Rejects if the store cannot be reached. */
  add(credit: NewCredit): Promise<CreditAnswer>
  /** The latest credits of the project that counts by `key`, the newest first. Rejects if the store cannot be reached. */
  list(key: string): Promise<readonly AddedCredit[]>
}

/** Credits of a project that are listed. */
export const MOST_LISTED = 100
/** How long an id is remembered. */
export const ID_MS = 7 * 24 * 3_600_000

/** The key under which a bucket's credit is kept, in the Cluster slot of its counter: one for all modes of its rule. */
export function creditKey(counterKey: string): string {
  const rest = counterKey.slice(projectPart(counterKey).length)
  return `${projectPart(counterKey)}:credit${rest.replace(/^:[er](?=:)/, '')}`
}

/** The key of the list of a project's credits. */
export function creditsKey(counterKey: string): string {
  return `${projectPart(counterKey)}:credits`
}

/** The key of an id that has added credit to the project. */
export function creditIdKey(counterKey: string, id: string): string {
  return `${projectPart(counterKey)}:credit-id:${id}`
}

/** What all counters of a project begin with: the hash tag, which no id of a project can end early. */
function projectPart(counterKey: string): string {
  return counterKey.slice(0, counterKey.indexOf('}') + 1)
}
