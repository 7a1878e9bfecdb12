/** The shape of projects.yaml: one source of types, validation and editor help. */
import { type Static, Type } from 'typebox'
import { BY_CLIENT, BY_HOST, ENVIRONMENTS, PLANS, PROJECT_ID_PATTERN, TOGETHER } from '../words/words.js'
import { DeclaredWord, NamedMap, Strict, Version } from './fields.js'
import { OverrideSchema } from './quota.js'

/** Matches a host name in the form under which requests are counted. */
export const HOST_NAME_PATTERN = '^(\\[[0-9a-f:.]+\\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)$'
/** A setting that is such a name. */
export const HostName = (description?: string) =>
  Type.String({
    pattern: HOST_NAME_PATTERN,
    maxLength: 253,
    expected: 'a host name in lowercase, without port',
    ...(description !== undefined && { description }),
  })

const ProjectEntry = Strict({
  id: Type.String({
    pattern: PROJECT_ID_PATTERN,
    expected: `an id of 1 to 128 letters, digits, ".", "_", "-" or ":", and not one of an unknown caller (${BY_CLIENT}, ${BY_HOST}, ${TOGETHER})`,
    description: `Stable id: limits are counted by it. ${BY_CLIENT}…, ${BY_HOST}… and ${TOGETHER} stand for unknown callers.`,
  }),
  plan: DeclaredWord({ description: 'Subscription plan.', examples: [...PLANS] }),
  environment: DeclaredWord({ description: 'Environment of the project.', examples: [...ENVIRONMENTS] }),
  hosts: Type.Array(HostName(), { default: [], description: 'Host names of this project (plugin host).' }),
  paths: Type.Array(
    Type.String({ pattern: '^/[^?#*{}\\s]*$', maxLength: 1024, expected: 'a path prefix such as /acme' }),
    { default: [], description: 'Path prefixes of this project (plugin path).' },
  ),
  apiKeyHashes: Type.Array(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      secret: true,
      expected: 'the SHA-256 of a key in 64 lowercase hex digits, never the key itself',
    }),
    { default: [], description: 'SHA-256 of each API key, in hex (plugin api-key).' },
  ),
  overrides: NamedMap(OverrideSchema, {
    default: {},
    description:
      'Negotiated limits of this project, by bucket. What an override does not set stays as in the row.',
  }),
})

const wordList = (words: readonly string[], description: string) =>
  Type.Array(DeclaredWord({}), {
    default: [...words],
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    description,
  })

export const projectsSchema = Strict({
  version: Version(),
  plans: wordList(PLANS, 'The plans that projects and limits may name.'),
  environments: wordList(ENVIRONMENTS, 'The environments that projects and limits may name.'),
  projects: Type.Array(ProjectEntry, { description: 'The known projects.' }),
})

export type ProjectEntry = Static<typeof ProjectEntry>
