/** Reports in-flight and volumetric rules that look at no request, whatever its method and path. */

import { listed } from '../../config/problem.js'
import type { RuleEntry } from '../../config/schema/policy.js'
import { columnOfUnknown } from '../../config/words/words.js'
import type { Remark, Subject } from './finding.js'

type Loaded = Subject['loaded']

/** Why a rule looks at no request, as the end of a sentence, and the key of the rule that is to blame. */
interface Idle {
  readonly key: readonly string[]
  readonly why: string
}

export function checkIdleRules({ rules: files, loaded }: Subject): Remark[] {
  return files.flatMap(({ file, document }) =>
    document.rules.flatMap((rule, i): Remark[] => {
      const idle = unverified(rule, loaded) ?? anonymous(rule, loaded) ?? unmet(rule, loaded)
      const at = { severity: 'warning', file } as const
      if (idle !== undefined) {
        const message = `Rule "${rule.id}" looks at no request: ${idle.why}.`
        return [{ ...at, path: ['rules', i, ...idle.key], message }]
      }
      const message = unseenFingerprint(rule, loaded)
      return message === undefined ? [] : [{ ...at, path: ['rules', i, 'key'], message }]
    }),
  )
}

/** For verified clients when no identifier verifies credentials. */
function unverified({ when }: RuleEntry, loaded: Loaded): Idle | undefined {
  if (when?.authenticated !== 'verified' || verifies(loaded)) return undefined
  const why = `none of the identifiers checks a credential. Those that do: ${listed(verifying(loaded))}`
  return { key: ['when', 'authenticated'], why }
}

/** For clients with credentials when no field or cookie counts as one, and no identifier uses one. */
function anonymous({ when }: RuleEntry, loaded: Loaded): Idle | undefined {
  const { headers, cookies } = loaded.config.gateway.credentials
  if (when?.authenticated !== true || headers.length + cookies.length > 0 || verifies(loaded))
    return undefined
  return {
    key: ['when', 'authenticated'],
    why: 'credentials of gateway.yaml lists neither headers nor cookies',
  }
}

const verifying = ({ plugins }: Loaded) =>
  plugins.identify.filter(({ verifies }) => verifies).map(({ name }) => name)

function verifies(loaded: Loaded): boolean {
  const names = verifying(loaded)
  return loaded.config.gateway.identify.some(({ plugin }) => names.includes(plugin))
}

/** For projects that all have another plan or environment than the rule asks for. */
function unmet({ when = {} }: RuleEntry, { config: { projects, gateway } }: Loaded): Idle | undefined {
  const { projects: ids, plans, environments } = when
  if (ids === undefined || (plans === undefined && environments === undefined)) return undefined
  const unknown = columnOfUnknown(gateway.unknownProject)
  const isMet = (id: string) => {
    const column = projects.find(one => one.id === id) ?? unknown
    if (column === undefined) return false
    const isPlan = plans === undefined || plans.includes(column.plan)
    return isPlan && (environments === undefined || environments.includes(column.environment))
  }
  if (ids.some(isMet)) return undefined
  return {
    key: ['when', 'projects'],
    why: 'none of these projects has such a plan and environment',
  }
}

/** What becomes of requests without a fingerprint, which are all. */
const WITHOUT: Readonly<Record<RuleEntry['missing'], string>> = {
  skip: 'looks at no request',
  shared: 'counts all requests together',
  deny: 'refuses every request',
}

/** Fingerprints in the key of an enforced rule where none can be known. */
function unseenFingerprint(rule: RuleEntry, { config: { gateway } }: Loaded): string | undefined {
  const part = rule.key.find(one => one === 'ja3' || one === 'ja4')
  const { listen, trustedProxies } = gateway
  if (part === undefined || rule.mode !== 'enforce') return undefined
  if (listen.tls !== undefined || trustedProxies.length > 0) return undefined
  return `Rule "${rule.id}" ${WITHOUT[rule.missing]}: there is no ${part} without listen.tls or a trusted proxy that sends it.`
}
