/** Reads environment variables that are not referenced in YAML files. */
import { readVariable } from '../../config/environment.js'
import { Failure } from '../errors.js'

/** The value of a variable, or of the file that `NAME_FILE` names; '' when neither is given. @throws {Failure} */
export function variable(name: string, env: NodeJS.ProcessEnv): string {
  const found = readVariable(name, env)
  if (found && 'fault' in found) throw new Failure(found.fault)
  return found?.value ?? ''
}
