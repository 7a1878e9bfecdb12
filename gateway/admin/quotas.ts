/** Negotiated limits on this port: quotas of one project for a bucket, in place of those of the files. */
import type { FastifyInstance } from 'fastify'
import {
  addSettable,
  BY,
  idParam,
  LONGEST_PROJECT,
  type OverrideReason,
  type Settable,
  type SettableRoute,
  UNTIL,
  WHY,
} from './settable.js'

/** A negotiated limit as sent; project and bucket are in the path. */
export interface QuotaBody extends OverrideReason {
  /** Only `true`, in place of the keys of a quota. */
  readonly unlimited?: unknown
  /** The keys of a quota, as `overrides` of projects.yaml has them; checked where they are read. */
  readonly [key: string]: unknown
  /** A day or a moment. */
  readonly until?: string
  readonly why: string
}

/** Whose negotiated limit, and for what. */
export interface QuotaNamed {
  readonly project: string
  readonly bucket: string
}

export type Quotas = Settable<QuotaBody, QuotaNamed> & {
  /** All that are set here. */
  list(): Promise<object>
  /** Those of a project, with those that the files give it. @throws {NotFound} */
  of(project: string): Promise<object>
}

const projectParam = {
  type: 'string',
  minLength: 1,
  maxLength: LONGEST_PROJECT,
  description: 'Id of a project that projects.yaml lists, or that credentials name.',
}
const QUOTA: SettableRoute = {
  tags: ['Overrides'],
  params: {
    type: 'object',
    required: ['id', 'bucket'],
    properties: {
      id: projectParam,
      bucket: { type: 'string', minLength: 1, maxLength: 64, description: 'Name of the bucket.' },
    },
  },
  put: {
    summary: 'Give a project a limit of its own for a bucket from now on; this is logged',
    description:
      'As an override in projects.yaml, which it is laid over: what it leaves out stays as in the files, and so do the counts of windows that keep their names. Holds until it is undone or its time is over, even after a reload. With Redis, all gateways on it follow within about a second. Without, it holds in this process until that ends.',
    body: {
      type: 'object',
      required: ['why'],
      // Without types: the keys of a quota are checked as those of projects.yaml, with their sentences.
      properties: {
        unlimited: { description: 'true, in place of a quota.' },
        burst: { description: 'Requests per second.' },
        sustained: { description: 'Requests per minute.' },
        windows: {
          description: 'Additional windows: name, requests and per, such as 1h, 90s, day or month.',
        },
        algorithm: { description: 'sliding-window, fixed-window or token-bucket.' },
        lease: { description: 'Whether gateways may take tokens in advance: true or false.' },
        trial: { description: 'A quota that only reports, with burst, sustained or windows.' },
        until: UNTIL,
        why: WHY,
        by: BY,
      },
    },
  },
  remove: { summary: 'Return a project to the limit of the files; this is logged' },
  bodyLimit: 8 * 1024,
}
const quotaListSchema = {
  tags: ['Overrides'],
  summary: 'All negotiated limits that were set here, the oldest first',
}
const quotasOfSchema = {
  tags: ['Overrides'],
  summary: 'The negotiated limits of a project: those of projects.yaml and those set here',
  params: idParam(projectParam),
}

export function addQuotas(app: FastifyInstance, quotas: Quotas): void {
  app.get('/projects/overrides', { schema: quotaListSchema }, async () => quotas.list())
  app.get<{ Params: { id: string } }>(
    '/projects/:id/overrides',
    { schema: quotasOfSchema },
    async ({ params }) => quotas.of(params.id),
  )
  addSettable(app, '/projects/:id/overrides/:bucket', quotas, QUOTA, ({ id, bucket }) => ({
    project: id,
    bucket,
  }))
}
