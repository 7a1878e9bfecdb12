/** Blocks of commands that no test runs, each with its reason. Their commands and options are still checked. */

export interface NotRun {
  readonly page: string
  /** The block's first line, or its beginning. */
  readonly first: string
  readonly why: string
}

const DEPLOY = 'docs/deploy.md'

export const NOT_RUN: readonly NotRun[] = [
  {
    page: DEPLOY,
    first: 'npm pack && npm install --global',
    why: 'needs systemd, and installs from the registry',
  },
  { page: DEPLOY, first: 'docker build -t sluice .', why: 'needs Docker' },
  { page: DEPLOY, first: 'deploy/compose/make-secrets.sh', why: 'needs Docker' },
  { page: DEPLOY, first: 'docker compose -f deploy/compose/compose.yaml -f', why: 'needs Docker' },
  { page: DEPLOY, first: 'docker build -t registry.example.com', why: 'needs Docker and a cluster' },
  { page: DEPLOY, first: 'kubectl apply -k deploy/kubernetes', why: 'needs a cluster' },
  { page: DEPLOY, first: "{ printf 'apiVersion:", why: 'needs a cluster' },
  { page: 'docs/monitoring.md', first: 'npm install @opentelemetry/', why: 'installs from the registry' },
  {
    page: 'docs/tools.md',
    first: 'source <(sluice completion bash)',
    why: 'each line is for another shell; test/tools/completion.test.ts tries all three',
  },
]
