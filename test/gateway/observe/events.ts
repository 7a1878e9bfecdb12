/** Finished requests to pass to observers. */
import { compiledRule } from '../../../gateway/compiled-rule.js'
import type { Facts, Rule } from '../../../gateway/types.js'
import type { Finished, Outcome, Reading, Verdict } from '../../../gateway/verdict.js'

export function rule(changes: Partial<Rule> = {}): Rule {
  return compiledRule({
    id: 'catch-all',
    kind: 'project-limits',
    mode: 'enforce',
    key: ['project'],
    missing: 'skip',
    onStoreError: 'local',
    config: {},
    source: { file: 'config/policies/project-limits.yaml', line: 20 },
    ...changes,
  })
}

export function reading(changes: Partial<Reading> = {}): Reading {
  return {
    policy: 'catch-all.burst',
    quota: 10,
    windowMs: 1000,
    used: 1,
    left: 9,
    resetMs: 250.4,
    violated: false,
    ...changes,
  }
}

export function outcome(changes: Partial<Outcome> = {}): Outcome {
  return {
    rule: rule(),
    route: '*',
    key: 'sluice:1:{acme}:e:catch-all',
    result: 'allowed',
    store: 'memory',
    readings: [reading()],
    ...changes,
  }
}

interface Changes {
  facts?: Partial<Facts>
  outcomes?: Outcome[]
  reportOnly?: Outcome[]
}

export function finished({
  facts,
  outcomes = [outcome()],
  reportOnly = [],
  ...changes
}: Omit<Partial<Finished>, 'facts'> & Changes = {}): Finished {
  const verdict: Verdict = {
    allowed: outcomes.every(({ result }) => result === 'allowed'),
    outcomes,
    reportOnly,
    settled: undefined,
    holdsSlot: false,
    answered: () => {},
    ended: () => {},
    upgraded: () => {},
    release: () => {},
  }
  return {
    id: 'request-1',
    method: 'GET',
    facts: factsOf(facts),
    project: { id: 'acme', plan: 'growth', environment: 'production' },
    upstream: 'identity',
    address: 'http://127.0.0.1:4433',
    verdict,
    revision: 'sha256:1234',
    status: verdict.allowed ? 200 : 429,
    source: verdict.allowed ? 'upstream' : 'gateway',
    bytesIn: 0,
    bytesOut: 2,
    startedAt: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
    durationMs: 12,
    upstreamMs: 11,
    limiterUs: 40,
    ...changes,
  }
}

function factsOf(changes: Partial<Facts> = {}): Facts {
  return {
    id: 'request-1',
    method: 'GET',
    path: '/sessions/whoami',
    query: '?token=canary-query',
    host: 'acme.localhost',
    client: '203.0.113.77',
    network: '203.0.113.77',
    trusted: false,
    authenticated: false,
    header: name => (name === 'x-request-id' || name === 'traceparent' ? undefined : 'canary-header'),
    ...changes,
  }
}
