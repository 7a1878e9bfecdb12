/** The documents of a loaded configuration, as a policy is compiled from them. */
import type { Config, ProjectLimitsPolicy, RulesPolicy } from '../../config/types.js'
import type { OnStoreError, Source } from '../types.js'
import type { Fault } from './fault.js'

/** The part of a configuration that a policy depends on. */
export type PolicyConfig = Omit<Config, 'gateway' | 'access'> & {
  readonly gateway: Pick<Config['gateway'], 'routes' | 'closed' | 'quotaPath' | 'cors' | 'store'>
}

/** In the order of their file names. */
export function projectLimitsIn({ policies }: PolicyConfig): ProjectLimitsPolicy[] {
  return policies.filter((policy): policy is ProjectLimitsPolicy => 'buckets' in policy.document)
}

/** The files of endpoint rules, in the order of their names. */
export function ruleFilesIn({ policies }: PolicyConfig): RulesPolicy[] {
  return policies.filter((policy): policy is RulesPolicy => !('buckets' in policy.document))
}

/** What a rule does while the counter store is away, where its file leaves that out too. */
export function onStoreErrorIn({ gateway }: PolicyConfig, written: OnStoreError | undefined): OnStoreError {
  return written ?? gateway.store.onError
}

/** Where the value at `path` is written. */
export function sourceIn(config: Pick<Config, 'locate'>, file: string, path: Fault['path']): Source {
  return { file, line: config.locate(file, path).line }
}
