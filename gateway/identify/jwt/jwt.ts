/** Plugin: the project that a signed token names (JSON Web Token, RFC 7519), sent as `Authorization: Bearer …` (RFC 6750). */
import { resolve } from 'node:path'
import { Type } from 'typebox'
import { Duration } from '../../../config/schema/duration.js'
import { Word, when } from '../../../config/schema/fields.js'
import { SettingsFault } from '../../errors.js'
import { definePlugin, type WrongCredential } from '../../plugin.js'
import { areFilesChecked } from '../checked.js'
import { namesListedOnly } from '../named-project.js'
import type { InUse } from '../shared.js'
import { UncheckedCredential } from '../unchecked.js'
import { projectReader } from './claims.js'
import type { KeySet } from './key-set.js'
import { isUrl, keySetFrom, nameOf, type ReadSet, sourceFault, textOfFile } from './key-source.js'
import { useKeySet } from './shared-key-sets.js'
import { fitsAny, type Keys, WrongToken } from './token.js'
import { Verifier } from './verifier.js'

/** Asymmetric ones: with a shared secret, whoever checks tokens could make them. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA'],
] as const
const BEARER = /^bearer /i

const Name = (description: string) => Type.String({ minLength: 1, maxLength: 1024, description })
const Claim = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 256,
    description: `${description}: its name, or a path such as realm/id.`,
  })
const MOST_AUDIENCES = 1000
const AUDIENCE = `a text, or a list of up to ${MOST_AUDIENCES}`

const schema = Type.Object({
  issuer: Name('What the claim `iss` must be.'),
  audience: Type.Unsafe<string | string[]>({
    type: ['string', 'array'],
    expected: AUDIENCE,
    description: 'Whom tokens must be for: the claim `aud` has to contain one of these.',
    ...when(
      { type: 'array' },
      { minItems: 1, maxItems: MOST_AUDIENCES, items: { type: 'string', minLength: 1, maxLength: 1024 } },
      { minLength: 1, maxLength: 1024, expected: AUDIENCE },
    ),
  }),
  audienceClaim: Type.String({
    default: 'aud',
    minLength: 1,
    maxLength: 256,
    description: 'The claim that has to contain it, where the issuer sends no `aud`, such as `client_id`.',
  }),
  jwks: Name("The issuer's public keys: a URL, or a file relative to gateway.yaml."),
  algorithms: Type.Array(Word(ALGORITHMS, { description: 'An algorithm.' }), {
    default: ['RS256', 'ES256'],
    minItems: 1,
    uniqueItems: true,
    description: 'Accepted algorithms of signatures.',
  }),
  project: Claim('Claim with the id of the project'),
  plan: Type.Optional(Claim('Claim with the plan of a project that projects.yaml does not list')),
  environment: Type.Optional(Claim('Claim with its environment')),
  scopes: Type.Array(Claim('Claim with scopes, a text of words or a list'), {
    default: ['scope', 'scp'],
    minItems: 1,
    maxItems: 8,
    uniqueItems: true,
    description: 'Claims that hold the scopes of a token. Those of all count together.',
  }),
  projects: Word(['any', 'known'], {
    default: 'any',
    description: 'Which projects tokens may name: any, or those that projects.yaml lists.',
  }),
  clockTolerance: Duration({
    default: '30s',
    minimum: '0ms',
    maximum: '10m',
    description: 'How far the clocks of issuer and gateway may differ.',
  }),
  allowPrivate: Type.Boolean({
    default: false,
    description: 'Whether `jwks` may be at a private address, and plain http.',
  }),
})

export const jwt = definePlugin({
  name: 'jwt',
  kind: 'identify',
  verifies: true,
  listedOnly: namesListedOnly,
  givesScopes: true,
  challenge: () => 'Bearer',
  schema,
  create(config, tools) {
    const { allowPrivate } = config
    const fault = sourceFault(config.jwks, allowPrivate)
    if (fault !== undefined) throw new SettingsFault(fault)
    const jwks = isUrl(config.jwks) ? config.jwks : resolve(tools.folder, config.jwks)
    // An issuer may be away for a while; a file that is wrong stays so.
    if (!isUrl(jwks) && !areFilesChecked()) checkFile(jwks, config)
    let keys: InUse<KeySet> | undefined
    const verifier = new Verifier(
      config,
      async (header, token) => {
        if (keys === undefined) throw new Error('only a running gateway reads the key set')
        return keys.value.keyOf(header, token)
      },
      projectReader(config, tools),
    )
    const forget = () => verifier.forget()
    const { algorithms } = config
    const warnIfUseless = (set: Keys) => {
      if (fitsAny(set, algorithms)) return
      tools.log.warn(
        { jwks: nameOf(jwks), algorithms },
        'A key set has no key for one of "algorithms": no token is accepted until it has one',
      )
    }
    return {
      identify(facts) {
        const field = facts.header('authorization')
        if (field === undefined || !BEARER.test(field)) return undefined
        const token = field.slice('bearer '.length).trim()
        const project = verifier.projectOf(token)
        return project instanceof Promise ? project.catch(error => wrongCredential(token, error)) : project
      },
      start() {
        keys = useKeySet(jwks, allowPrivate, tools.log)
        keys.value.onRemoved.add(forget)
        keys.value.onReplaced.add(warnIfUseless)
      },
      async close() {
        keys?.value.onRemoved.delete(forget)
        keys?.value.onReplaced.delete(warnIfUseless)
        keys?.release()
        keys = undefined
      },
    }
  },
})

/** @throws a sentence */
function checkFile(
  path: string,
  { jwks, algorithms }: { jwks: string; algorithms: readonly string[] },
): void {
  let text: string
  try {
    text = textOfFile(path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(`The file ${jwks} cannot be read${code === undefined ? `: ${message}` : ` (${code}).`}`)
  }
  let read: ReadSet
  try {
    read = keySetFrom(text)
  } catch (error) {
    throw new Error(`The file ${jwks} is no key set: ${(error as Error).message}.`)
  }
  const secret = read.skipped.find(({ isPrivate }) => isPrivate)
  if (secret !== undefined) {
    throw new Error(
      `The file ${jwks} has a private key, keys[${secret.index}]: a key set holds public keys only.`,
    )
  }
  if (fitsAny(read.set, algorithms)) return
  throw new Error(`No key of the file ${jwks} is for one of "algorithms" (${algorithms.join(', ')}).`)
}

function wrongCredential(token: string, error: unknown): WrongCredential {
  if (!(error instanceof WrongToken)) throw new UncheckedCredential(token, error)
  const { message: reason, mayBeRight } = error
  return { wrongCredential: token, reason, mayBeRight }
}
