/** Asks the identifiers in their configured order, and says whom a request counts for that none of them identifies. */

import type { UnknownProject } from '../../config/words/words.js'
import type { CredentialHeader, Identifier, WrongCredential } from '../plugin.js'
import type { CredentialCheck, Facts, Log, Project } from '../types.js'
import { strippedFrom } from './stripped.js'
import { Unchecked, UncheckedCredential } from './unchecked.js'
import { UnknownHosts, unknownCallers } from './unknown.js'

/** Who sent a request, as far as the identifiers know. */
export interface Caller {
  /** Undefined if nobody may be counted: unknown projects are rejected, or the route requires a credential. */
  readonly project: Project | undefined
  /** The identifier that found the project, or else the first that found the credential wrong or could not check it. */
  readonly identifier: string | undefined
  readonly credential: CredentialCheck
  /** The first credential that was found wrong; only where `credential` is `invalid`. */
  readonly wrong: WrongCredential | undefined
  /** A credential that is certainly wrong: a guess, for the throttle. */
  readonly guess?: string | undefined
  /** Lower-case names of the headers that the upstream does not get. */
  readonly stripped: readonly string[]
}

/**
 * @param required only identifiers that check a credential are asked, and unknown projects are not counted
 */
export type Identify = (facts: Facts, required: boolean) => Caller | Promise<Caller>

/** What an identifier says, once its faults are contained. */
export type Said = Project | WrongCredential | Unchecked | undefined

/** An identifier of the configuration. */
export interface AskedIdentifier {
  /** The name of its plugin. */
  readonly name: string
  /** True if it finds projects by credentials that it checks. */
  readonly verifies: boolean
  /** True if it finds only projects that projects.yaml lists. */
  readonly listedOnly: boolean
  /** The challenge that a client without a credential gets (RFC 9110 section 11.6.1), such as `Bearer`. */
  readonly challenge?: string | undefined
  /** The header that is removed from requests whose credential is in it. */
  readonly strips?: string | CredentialHeader | undefined
  /** Does not throw, and its promises do not reject. */
  identify(facts: Facts, explains?: boolean): Said | Promise<Said>
  start(): void
  close(): Promise<void>
}

const NONE: readonly string[] = []

/** How long an identifier may take. */
const DEADLINE_MS = 2000

/** What its plugin says about an identifier. */
type About = Pick<AskedIdentifier, 'name' | 'challenge' | 'strips'> &
  Partial<Pick<AskedIdentifier, 'verifies' | 'listedOnly'>>

/** Wraps an identifier so that a failure counts as "not known", and the next identifier is asked. */
export function contained(
  identifier: Identifier,
  { name, verifies = false, listedOnly = false, challenge, strips }: About,
  log: Log,
): AskedIdentifier {
  const failed = (error: unknown, id?: string): Unchecked => {
    const isOf = error instanceof UncheckedCredential
    const err = isOf ? error.cause : error
    log.warn({ err, plugin: name, id }, 'an identifier failed; the next one was asked')
    return new Unchecked(isOf ? error.credential : undefined)
  }
  const found = (said: Project | WrongCredential | undefined): Said =>
    said !== undefined && verifies && !isWrong(said) ? verified(said) : said
  return {
    name,
    verifies,
    listedOnly,
    challenge,
    strips,
    identify(facts, explains) {
      try {
        const said = identifier.identify(facts, explains)
        if (!(said instanceof Promise)) return found(said)
        return inTime(said).then(found, error => failed(error, facts.id))
      } catch (error) {
        return failed(error, facts.id)
      }
    },
    start() {
      try {
        identifier.start?.()
      } catch (error) {
        failed(error)
      }
    },
    close: async () => identifier.close?.(),
  }
}

/** Each project as it is once verified: what is known of a project is remembered by its object. */
const verifiedProjects = new WeakMap<Project, Project>()

function verified(project: Project): Project {
  const known = verifiedProjects.get(project)
  if (known !== undefined) return known
  const { id, plan, environment, scopes } = project
  const made = { id, plan, environment, verified: true, scopes }
  verifiedProjects.set(project, made)
  return made
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${DEADLINE_MS} ms`)), DEADLINE_MS)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/**
 * @param unknownProject whom a request counts for that is not identified; or `reject`
 */
export function identifyBy(
  identifiers: readonly AskedIdentifier[],
  unknownProject: UnknownProject,
  unknownHosts: Pick<UnknownHosts, 'countApart'> = new UnknownHosts(),
): Identify {
  const callerOf = unknownCallers(unknownProject, unknownHosts)
  const verifying = identifiers.filter(({ verifies }) => verifies)
  const stripping = identifiers.filter(({ strips }) => strips !== undefined)
  return (facts, required) => {
    const asking = new Asking(
      facts,
      required ? verifying : identifiers,
      required ? undefined : callerOf,
      stripping,
    )
    return asking.ask(0)
  }
}

/** The question to the identifiers about one request. */
class Asking {
  readonly #facts: Facts
  readonly #identifiers: readonly AskedIdentifier[]
  readonly #unknown: ((facts: Facts) => Project) | undefined
  readonly #stripping: readonly AskedIdentifier[]
  #wrong: WrongCredential[] | undefined
  #unchecked: Unchecked[] | undefined
  #isUnchecked = false
  /** The first that did not let its credential pass. */
  #doubtful: string | undefined
  /** Those that strip and found no credential of theirs. */
  #silent: AskedIdentifier[] | undefined

  constructor(
    facts: Facts,
    identifiers: readonly AskedIdentifier[],
    unknown: ((facts: Facts) => Project) | undefined,
    stripping: readonly AskedIdentifier[],
  ) {
    this.#facts = facts
    this.#identifiers = identifiers
    this.#unknown = unknown
    this.#stripping = stripping
  }

  /** Asks from this identifier on, until one knows the project. */
  ask(from: number): Caller | Promise<Caller> {
    for (let i = from; i < this.#identifiers.length; i++) {
      const identifier = this.#identifiers[i] as AskedIdentifier
      const said = identifier.identify(this.#facts)
      if (said instanceof Promise) return said.then(late => this.#take(late, identifier) ?? this.ask(i + 1))
      const caller = this.#take(said, identifier)
      if (caller !== undefined) return caller
    }
    // What one finds wrong may be right for another that could not be asked.
    const credential = this.#isUnchecked ? 'unchecked' : this.#wrong !== undefined ? 'invalid' : 'none'
    return this.#caller(this.#unknown?.(this.#facts), this.#doubtful, credential)
  }

  /** The caller, if this answer says who it is. */
  #take(said: Said, identifier: AskedIdentifier): Caller | undefined {
    const { name, verifies, strips } = identifier
    if (said === undefined) {
      if (strips !== undefined) this.#silent = [...(this.#silent ?? []), identifier]
    } else if (said instanceof Unchecked) {
      this.#doubtful ??= name
      this.#unchecked = [...(this.#unchecked ?? []), said]
      this.#isUnchecked ||= verifies
    } else if (isWrong(said)) {
      this.#doubtful ??= name
      this.#wrong = [...(this.#wrong ?? []), said]
    } else {
      const credential = said.verified ? 'verified' : this.#wrong === undefined ? 'none' : 'invalid'
      return this.#caller(said, name, credential)
    }
    return undefined
  }

  #caller(project: Project | undefined, identifier: string | undefined, credential: CredentialCheck): Caller {
    const wrong = credential === 'invalid' ? this.#wrong?.[0] : undefined
    return { project, identifier, credential, wrong, guess: this.#guess(), stripped: this.#stripped() }
  }

  /** A wrong credential, unless it may be right for somebody who could not say. */
  #guess(): string | undefined {
    if (this.#wrong === undefined) return undefined
    const doubts = [
      ...(this.#unchecked ?? []).map(({ credential }) => credential),
      ...this.#wrong.filter(({ mayBeRight }) => mayBeRight).map(({ wrongCredential }) => wrongCredential),
    ]
    if (doubts.includes(undefined)) return undefined
    return this.#wrong.find(({ wrongCredential }) => !doubts.includes(wrongCredential))?.wrongCredential
  }

  /** Of the identifiers that were not asked too: who found the caller first must not decide who sees a key. */
  #stripped(): readonly string[] {
    if (this.#stripping.length === 0) return NONE
    return this.#stripping
      .map(one => {
        const isSilent = this.#silent?.includes(one) === true
        return strippedFrom(this.#facts, one.strips as string | CredentialHeader, isSilent)
      })
      .filter(header => header !== undefined)
  }
}

function isWrong(said: Project | WrongCredential): said is WrongCredential {
  return 'wrongCredential' in said
}
