/** The replay as plain data: what `--json` prints. Additions keep `version`. */
import type { describeIntake } from '../log/intake.js'
import type { ReplayDifference } from './difference.js'
import type { RecordedDocument } from './recorded.js'
import type { ReplayTally } from './tally.js'

export interface ReplayDocument {
  readonly version: 1
  readonly input: ReturnType<typeof describeIntake> & { readonly formats: readonly string[] }
  readonly candidate: PolicyDocument
  readonly against: PolicyDocument | null
  /** The candidate compared with `against`; null without it. */
  readonly difference: ReplayDifference | null
  /** The candidate compared with what the log says was done then. */
  readonly recorded: RecordedDocument | null
  /** What the log does not contain, as sentences. */
  readonly accuracy: readonly string[]
}

export interface PolicyDocument extends ReplayTally {
  readonly policies: string
  readonly revision: string
}
