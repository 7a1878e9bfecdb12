import type { Directory } from '../model.js'
import { ScimError } from '../scim/error.js'
import { fits, goodOnes, hashKey, type SecretBox } from '../secrets.js'
import type { Store } from '../store/contract.js'

/**
 * The directory that a SCIM secret opens. Checked in this order: the directory exists (404), the secret is its current
 * one or an old one that is still valid after a rotation (401), the directory is active (403). Throws ScimError.
 */
export async function admit(
  store: Store,
  box: SecretBox,
  directoryId: string,
  secret: string | undefined,
): Promise<Directory> {
  const directory = await store.directory(directoryId)
  if (!directory) throw new ScimError(404, 'There is no directory with this id.')
  const { id, scimSecret, oldScimSecrets } = directory
  const sealed = [scimSecret, ...goodOnes(oldScimSecrets).map(old => old.secret)]
  const hashes = sealed.map(each => hashKey(box.open(each, id, 'scim')))
  // Every secret is compared, so that the time taken does not reveal which one was close.
  if (secret === undefined || !hashes.map(hash => fits(secret, hash)).includes(true)) {
    throw new ScimError(401, 'The header "Authorization: Bearer <secret>" is missing or its secret is wrong.')
  }
  if (directory.deactivated) throw new ScimError(403, 'This directory is deactivated.')
  return directory
}
