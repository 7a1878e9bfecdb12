/** The replay as plain data: what `--json` prints. Additions keep `version`. Numbers are of requests. */
import type { Mode } from '../../gateway/types.js'
import type { IntakeDocument } from '../log/intake.js'

export interface ReplayDocument {
  readonly version: 1
  readonly input: IntakeDocument & { readonly formats: readonly string[] }
  readonly candidate: PolicyDocument
  readonly against: PolicyDocument | null
  /** The candidate compared with `against`; null without it. */
  readonly difference: ReplayDifference | null
  /** The candidate compared with what the log says was done then; null when it does not say. */
  readonly recorded: RecordedDocument | null
  /** What the log does not contain, as sentences. */
  readonly accuracy: readonly string[]
}

export interface PolicyDocument extends ReplayTally {
  /** The folder or file it was loaded from. */
  readonly policies: string
  readonly revision: string
}

/** The results of the traffic under one policy. */
export interface ReplayTally {
  readonly requests: number
  readonly admitted: number
  readonly refused: number
  /** Requests that at least one report-only rule would have refused. */
  readonly wouldRefuse: number
  /** Answered with an error before any rule was asked, by its code. */
  readonly unserved: Readonly<Record<string, number>>
  /** The most refusing first. */
  readonly rules: readonly ReplayedRule[]
  readonly projects: readonly (RefusedOfAll & { readonly project: string })[]
  readonly hours: readonly (RefusedOfAll & { /** Its beginning, ISO 8601. */ readonly hour: string })[]
  readonly firstOffenders: readonly Offender[]
}

export interface RefusedOfAll {
  readonly requests: number
  readonly refused: number
}

/** What a rule did; a report-only one would have refused. */
export interface ReplayedRule extends RefusedOfAll {
  readonly rule: string
  readonly kind: string
  readonly mode: Mode
  /** How many projects it refused. */
  readonly projects: number
  readonly first: Offender | null
}

/** A refused request, as far as a log may show it. */
export interface Offender {
  /** ISO 8601. */
  readonly at: string
  readonly project: string
  readonly method: string
  readonly path: string
  /** The enforced rules that refused it, or the one that only reports. */
  readonly rules: readonly string[]
}

/** What two policies decide about the same requests. */
export interface ReplayDifference {
  readonly bothAdmit: number
  readonly bothRefuse: number
  readonly newlyRefused: ChangedRequests
  readonly newlyAdmitted: ChangedRequests
}

/** Requests that one policy refuses and the other does not, by rule and by project. */
export interface ChangedRequests {
  readonly requests: number
  /** The rules that refuse where the other policy does not. */
  readonly rules: Readonly<Record<string, number>>
  readonly projects: Readonly<Record<string, number>>
  readonly first: readonly Offender[]
}

/** How often the candidate decides as the log says. */
export interface RecordedDocument {
  /** Those for which the log says whether they were refused. */
  readonly requests: number
  readonly bothAdmit: number
  readonly bothRefuse: number
  /** Refused only by the gateway that wrote the log, or only by the candidate. */
  readonly onlyThen: number
  readonly onlyNow: number
}
