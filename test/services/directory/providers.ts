/** Shared helpers of the tests of identity providers. */
import type { Directory, Service } from './harness.js'

export const core = 'urn:ietf:params:scim:schemas:core:2.0'
export const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const patchUrn = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
export const errorUrn = 'urn:ietf:params:scim:api:messages:2.0:Error'
export const listUrn = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'

export const find = (filter: string, more = ''): string => `?filter=${encodeURIComponent(filter)}${more}`
export const patch = (...Operations: object[]): object => ({ schemas: [patchUrn], Operations })

interface Seen {
  users: Record<string, { active: boolean; email: string; first_name: string; last_name: string }>
  groups: Record<string, string[]>
}

/** The directory as an integrator sees it: users by userName, groups by name with their members. */
export async function seen(service: Service, directory: Directory): Promise<Seen> {
  const scope = `?directoryId=${directory.id}`
  const users = (await service.manage('GET', `/users${scope}`)).body.data
  const groups: Record<string, string[]> = {}
  for (const { id, name } of (await service.manage('GET', `/groups${scope}`)).body.data) {
    const members = (await service.manage('GET', `/groups/${id}/members${scope}`)).body.data
    const names = members.map(
      ({ user_id }: { user_id: string }) =>
        users.find((user: { id: string }) => user.id === user_id).raw.userName,
    )
    groups[name] = names.sort()
  }
  return {
    users: Object.fromEntries(
      users.map(
        ({
          raw,
          active,
          email,
          first_name,
          last_name,
        }: Seen['users'][string] & { raw: { userName: string } }) => [
          raw.userName,
          { active, email, first_name, last_name },
        ],
      ),
    ),
    groups,
  }
}
