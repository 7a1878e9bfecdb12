import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { JsonObject, JsonValue } from '../model.js'
import { ScimError } from '../scim/error.js'
import { ConnectionFlowError, Forbidden, ProviderError } from './error.js'
import type { ProviderReader } from './provider.js'
import type { Bounds } from './settings.js'
import { distinctName, memberToUser, toGroup, toUser } from './translate.js'

/** A provider's user or group. `body` is the JSON text of the SCIM resource, null when it would not be a valid one. */
export interface Item {
  readonly body: string | null
  /** The name of a group when its own is taken by another. */
  readonly fallback?: string
}

/** What was read from a provider, by the provider's ids. */
export interface Snapshot {
  readonly users: Map<string, Item>
  readonly groups: Map<string, Item>
  /** The users of each group whose members were read completely. */
  readonly members: Map<string, Set<string>>
  /** Why the snapshot is incomplete; empty when it is complete. */
  readonly problems: string[]
  /** Whether the users are those of the list of users, or the members of groups; null when neither could be read. */
  usersFrom: 'users' | 'members' | null
}

export interface ProviderReadOptions {
  readonly bounds: Bounds
  /** Only addresses of this domain are users when they are known as members alone; empty: all. */
  readonly domain: string
  /** Whether members of groups may stand in for the users, where those may not be read. */
  readonly membersSuffice: boolean
}

/** Reads users, groups and members as far as possible. A failure becomes a problem of the snapshot, not an error. */
export async function readProvider(
  provider: ProviderReader,
  { bounds, domain, membersSuffice }: ProviderReadOptions,
): Promise<Snapshot> {
  const snapshot: Snapshot = {
    users: new Map(),
    groups: new Map(),
    members: new Map(),
    problems: [],
    usersFrom: null,
  }
  const { users, groups, members, problems } = snapshot
  try {
    snapshot.usersFrom = (await readUsers(provider, snapshot, bounds, membersSuffice)) ? 'users' : 'members'
    const see = snapshot.usersFrom === 'members' ? memberReader(snapshot, bounds, domain) : () => undefined
    await readItems(provider.groups(), 'group', groups, bounds.groups, problems, toGroup, distinctName)
    let memberships = 0
    for (const id of groups.keys()) {
      const found = await readMembers(provider, id, bounds.memberships - memberships, problems, see)
      if (found) members.set(id, found)
      memberships += found?.size ?? 0
    }
  } catch (error) {
    problems.push(problemOf(error))
  }
  for (const [type, items] of Object.entries({ users, groups })) {
    const unusable = [...items.values()].filter(({ body }) => body === null).length
    if (unusable > 0) problems.push(`${unusable} ${type} of the provider are not valid and were left out`)
  }
  return snapshot
}

/** False where users may not be read, and the members of groups have to do. */
async function readUsers(
  provider: ProviderReader,
  { users, problems }: Snapshot,
  bounds: Bounds,
  membersSuffice: boolean,
): Promise<boolean> {
  let begun = false
  const pages = async function* () {
    for await (const page of provider.users()) {
      begun = true
      yield page
    }
  }
  try {
    await readItems(pages(), 'user', users, bounds.users, problems, toUser)
    return true
  } catch (error) {
    // Whoever may read the first page, even an empty one, may read users.
    if (!(error instanceof Forbidden) || begun) throw error
    if (membersSuffice) return false
    throw new ProviderError(
      `${error.message}, though users could be read before. If only groups are to be read from now on, pull this directory once with allowDeletions=true`,
      error.status,
    )
  }
}

/** Takes members of groups for users, each as the first group has it that says enough. */
function memberReader({ users }: Snapshot, bounds: Bounds, domain: string) {
  const ending = `@${domain.toLowerCase()}`
  return (id: string, member: JsonObject): void => {
    const { email } = member
    const isElsewhere = typeof email === 'string' && !email.toLowerCase().endsWith(ending)
    if (users.get(id)?.body || (domain !== '' && isElsewhere)) return
    users.set(id, { body: textOf(memberToUser, member) })
    if (users.size > bounds.users) throw tooMany(bounds.users, 'user')
  }
}

const tooMany = (most: number, type: string): ProviderError =>
  new ProviderError(`The provider has more than ${most} ${type}s`)

async function readItems(
  pages: AsyncIterable<JsonObject[]>,
  type: 'user' | 'group',
  into: Map<string, Item>,
  most: number,
  problems: string[],
  translate: (item: JsonObject) => JsonObject,
  fallback?: (item: JsonObject) => string,
): Promise<void> {
  let nameless = 0
  for await (const page of pages) {
    for (const item of page) {
      const id = idOf(item.id)
      if (id === undefined) nameless++
      else {
        into.set(id, { body: textOf(translate, item), ...(fallback ? { fallback: fallback(item) } : {}) })
      }
    }
    if (into.size > most) throw tooMany(most, type)
    await yieldToOthers()
  }
  if (nameless > 0) problems.push(`The provider returned ${nameless} ${type}s without an id`)
}

/** Undefined when this group's members cannot be read; reading goes on with the others. */
async function readMembers(
  provider: ProviderReader,
  groupId: string,
  most: number,
  problems: string[],
  see: (id: string, member: JsonObject) => void,
): Promise<Set<string> | undefined> {
  const found = new Set<string>()
  try {
    for await (const page of provider.members(groupId)) {
      for (const member of page) {
        const userId = idOf(member.id)
        // Nested groups and whole domains are not users.
        if (userId === undefined || (member.type !== undefined && member.type !== 'USER')) continue
        found.add(userId)
        see(userId, member)
      }
      if (found.size > most) throw new ProviderError('The provider has more memberships than can be read')
    }
    return found
  } catch (error) {
    const { status = 0 } = error instanceof ProviderError ? error : {}
    // Deleted since the list of groups was read, or not accessible to us.
    if (status !== 403 && status !== 404) throw error
    problems.push(problemOf(error))
    return undefined
  }
}

const longestId = 256
const idOf = (id: JsonValue | undefined): string | undefined =>
  typeof id === 'string' && id !== '' && id.length <= longestId ? id : undefined

function textOf(translate: (item: JsonObject) => JsonObject, item: JsonObject): string | null {
  try {
    return JSON.stringify(translate(item))
  } catch (error) {
    if (error instanceof ScimError) return null
    throw error
  }
}

/** The message of a provider failure; any other error is rethrown. */
function problemOf(error: unknown): string {
  if (error instanceof ProviderError || error instanceof ConnectionFlowError) return error.message
  if ((error as Error).name === 'TimeoutError') return 'Reading from the provider took too long'
  throw error
}
