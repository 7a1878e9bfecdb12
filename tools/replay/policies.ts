/** The policies of a replay: a whole configuration, or a folder of policies combined with one; and their rules outside project limits. */

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isProjectLimits } from '../../config/load.js'
import { listProblems } from '../../config/problem.js'
import { type Configuration, load } from '../../gateway/configured/load.js'
import type { VolumetricRule } from '../../gateway/explain/settings.js'
import type { WrittenWhen } from '../../gateway/policy/when.js'
import type { KeyPart } from '../../gateway/types.js'
import { Unusable } from '../command.js'
import { quiet } from '../config.js'

/**
 * @param place a folder with gateway.yaml, that file itself, or a folder of policy files
 * @param configPath the configuration with which a folder of policy files is combined
 * @throws {Unusable} with all problems of the configuration
 */
export async function loadPolicy(
  place: string,
  configPath: string,
  env: NodeJS.ProcessEnv,
): Promise<Configuration> {
  const loaded = isConfiguration(place)
    ? await load(place, env, quiet)
    : await load(configPath, env, quiet, { policies: place })
  if ('problems' in loaded) throw new Unusable(listProblems(loaded.problems))
  return loaded
}

function isConfiguration(place: string): boolean {
  if (!existsSync(place)) throw new Unusable(`There is no folder ${place}.`)
  return statSync(place).isFile() || existsSync(join(place, 'gateway.yaml'))
}

export interface NamedRule {
  readonly id: string
  readonly kind: string
  readonly key: readonly KeyPart[]
  readonly enforceFor?: number | undefined
  readonly when: WrittenWhen | undefined
  /** The settings of a volumetric rule. */
  readonly flood: VolumetricRule | undefined
}

/**
 * The rules of the policies outside project limits, which may count by more than the project. A rule of two policies is
 * there twice: its settings may differ.
 */
export function rulesOf(policies: readonly Configuration[]): NamedRule[] {
  return policies.flatMap(({ config }) =>
    config.policies.flatMap(policy => {
      if (isProjectLimits(policy)) return []
      return policy.document.rules.map(rule => {
        const { id, key, when, enforceFor } = rule
        const flood = policy.kind === 'volumetric' ? (rule as unknown as VolumetricRule) : undefined
        return { id, kind: policy.kind, key, when, enforceFor, flood }
      })
    }),
  )
}

/** Their ids, each once, for a sentence. */
export function names(rules: readonly { readonly id: string }[]): string {
  return [...new Set(rules.map(({ id }) => id))].join(', ')
}
