/** An event as webhooks and callbacks get it. */
export interface DirectoryEvent {
  readonly event: string
  readonly tenant: string
  readonly product: string
  readonly directory_id: string
  readonly data: Record<string, unknown>
  /** Of an update: what changed, with the values from before. */
  readonly previous_attributes?: Record<string, unknown>
  readonly id: string
  /** ISO 8601, UTC. */
  readonly created_at: string
  /** Counts the events of the directory, without a gap. */
  readonly sequence: number
}

/** Is given each event after its change is stored, and waited for. */
export type EventCallback = (event: DirectoryEvent) => unknown
