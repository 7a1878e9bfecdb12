/** Configurations from which the tests here compile policies. */
import type { PolicyFile, ProjectLimitsPolicy, RulesPolicy } from '../../../config/types.js'
import { ENVIRONMENTS, PLANS } from '../../../config/words/words.js'
import { compilePolicy } from '../../../gateway/policy/compile.js'
import type { PolicyConfig } from '../../../gateway/policy/documents.js'

type Document = ProjectLimitsPolicy['document']

export function projectLimits(
  file: string,
  document: Pick<Document, 'buckets' | 'limits'> & Partial<Document>,
): ProjectLimitsPolicy {
  const common = { version: 1, kind: 'project-limits', mode: 'enforce', onStoreError: 'local' } as const
  return { file, kind: 'project-limits', document: { ...common, ...document } }
}

export function ruleFile(file: string, kind: string, rules: RulesPolicy['document']['rules']): RulesPolicy {
  return { file, kind, document: { version: 1, kind, rules } }
}

/** The policy of these files, with the plans and environments of the spec. */
export function compiled(policies: readonly PolicyFile[], changes: Partial<PolicyConfig> = {}) {
  const config: PolicyConfig = {
    gatewayFile: 'gateway.yaml',
    projectsFile: 'projects.yaml',
    gateway: {
      routes: [{ path: '/**', upstream: 'app', auth: 'optional', scopes: [] }],
      closed: [],
      cors: 'echo',
      store: { onError: 'local' } as never,
    },
    projects: [],
    planWords: { plans: PLANS, environments: ENVIRONMENTS },
    policies,
    locate: file => ({ file, line: 1, col: 1 }),
    ...changes,
  }
  return compilePolicy(config, { revision: 'test', readings: new Map(), limitsReads: new Set() })
}

/** An entry of projects.yaml. */
export function projectEntry(
  entry: Pick<PolicyConfig['projects'][number], 'id' | 'plan' | 'environment' | 'overrides'>,
): PolicyConfig['projects'][number] {
  return { hosts: [], paths: [], apiKeyHashes: [], ...entry }
}
