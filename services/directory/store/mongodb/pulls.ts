import type { PullState, PullStore } from '../contract.js'
import type { Collections } from './connection.js'
import { type Leased, leaseId, newestLease, takeLease } from './leases.js'

/** A pull of a directory; the one with fence 0 only marks the directory as pulled. */
export interface PullDocument extends Leased {
  /** Epoch ms. */
  started: number
  /** The state of the previous pull, until this one has reported. */
  state: PullState | null
}

export function createPullStore({ pulls }: Collections): PullStore {
  return {
    async enlistPull(directory) {
      if (await newestLease(pulls, directory)) return
      const first = { directory, fence: 0, until: 0, started: 0, state: null }
      await pulls.updateOne({ _id: leaseId(directory, 0) }, { $setOnInsert: first }, { upsert: true })
    },
    pulledDirectories: () => pulls.distinct('directory'),
    async claimPull(directory, { now, until, idleSince = now }) {
      const last = await newestLease(pulls, directory)
      if (!last || last.until > now || last.started > idleSince) return undefined
      return takeLease(pulls, { ...last, started: now }, until)
    },
    async reportPull(directory, fence, report) {
      if ((await newestLease(pulls, directory))?.fence !== fence) return false
      const { matchedCount } = await pulls.updateOne({ _id: leaseId(directory, fence) }, { $set: report })
      return matchedCount === 1
    },
    async pullStates(directoryIds) {
      const found = await pulls
        .find({ directory: { $in: [...directoryIds] } })
        .sort({ directory: 1, fence: 1 })
        .toArray()
      return new Map(
        found.flatMap(({ directory, state, until }) => (state ? [[directory, { state, until }]] : [])),
      )
    },
  }
}
