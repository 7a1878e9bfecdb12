/**
 * Checks plain data against a schema, fills in defaults, and explains faults in plain English; the validators of all
 * files. The only user of ajv.
 */
import { Ajv } from 'ajv'
import type { DataValidationCxt } from 'ajv/dist/types/index.js'
import type { TSchema } from 'typebox'
import { isListenHost } from './checks/listen-host.js'
import {
  isAcmeDomain,
  isCidr,
  isDay,
  isDayOrInstant,
  isHttpOrigin,
  isHttpsUrl,
  isProxyHeader,
  isRedisUrl,
  isTimeZone,
  isTls12Cipher,
  isWebhookSecret,
  isWebhookUrl,
} from './formats.js'
import type { UnplacedProblem } from './problem.js'
import { ACCESS, accessSchema } from './schema/access.js'
import { type DurationBounds, durationWithin } from './schema/duration.js'
import { gatewaySchema } from './schema/gateway.js'
import { type PercentBounds, percentWithin } from './schema/percent.js'
import type { PluginSchemas } from './schema/plugin.js'
import { projectLimitsSchema, ruleFileSchema } from './schema/policy.js'
import { projectsSchema } from './schema/projects.js'
import { parseSize } from './schema/size.js'
import { faultOf, type VariablesOf } from './sentences.js'
import { PROJECT_LIMITS } from './words/bucket.js'
import { type HiddenAs, hidden } from './words/hidden.js'

/** Maps by the word that abbreviates them. */
type Shorthand = Readonly<Record<string, object>>

/**
 * Reports all faults at once and changes `data`: defaults are filled in, durations become milliseconds, percentages
 * numbers, secrets are hidden, and a plugin's bare name becomes the map it is short for. `variablesOf` says which values come from the
 * environment.
 */
export type Validator = (data: unknown, variablesOf: VariablesOf) => UnplacedProblem[]

/** Compiles one schema. Throws an Error if it is not a valid JSON Schema. */
export function createValidator(schema: TSchema): Validator {
  compiler ??= createAjv()
  const validate = compiler.compile(schema)
  // The compiler would keep every schema for ever.
  compiler.removeSchema(schema)
  return (data, variablesOf) => {
    if (validate(data)) return []
    const faults = (validate.errors ?? []).flatMap(error => faultOf(error, variablesOf) ?? [])
    // A value that violates two keywords is reported once.
    return [...new Map(faults.map(fault => [JSON.stringify(fault), fault])).values()]
  }
}

/** The validators of all files. */
export interface Validators {
  readonly gateway: Validator
  readonly projects: Validator
  /** By the kind of the policy file. */
  readonly policies: ReadonlyMap<string, Validator>
}

/** Cached because compiling schemas takes tens of milliseconds, during which a reload would block requests. */
const validators = new WeakMap<PluginSchemas, Validators>()

export function validatorsOf(plugins: PluginSchemas): Validators {
  const present = validators.get(plugins)
  if (present !== undefined) return present
  const policies = new Map([[PROJECT_LIMITS, createValidator(projectLimitsSchema)]])
  for (const [kind, schema] of Object.entries(plugins.limit)) {
    if (kind !== PROJECT_LIMITS) policies.set(kind, createValidator(ruleFileSchema(kind, schema)))
  }
  policies.set(ACCESS, createValidator(accessSchema))
  const gateway = createValidator(gatewaySchema(plugins))
  const made = { gateway, projects: createValidator(projectsSchema), policies }
  validators.set(plugins, made)
  return made
}

/** Shared, because each instance compiles the meta-schema again, which takes longer than most of our schemas. */
let compiler: Ajv | undefined

function createAjv(): Ajv {
  const ajv = new Ajv({
    // Optimizing takes half of the compile time and gains nothing for documents that are checked once.
    code: { optimize: false },
    allErrors: true,
    verbose: true,
    messages: false,
    useDefaults: true,
    ownProperties: true,
    strict: true,
    strictTypes: false,
    strictRequired: false,
  })
  // Annotations for sentences.ts; they validate nothing.
  for (const keyword of ['expected', 'secret', 'whyRequired']) ajv.addKeyword({ keyword })
  ajv.addFormat('http-origin', isHttpOrigin)
  ajv.addFormat('listen-host', isListenHost)
  ajv.addFormat('redis-url', isRedisUrl)
  ajv.addFormat('cidr', isCidr)
  ajv.addFormat('day', isDay)
  ajv.addFormat('tls12-cipher', isTls12Cipher)
  ajv.addFormat('acme-domain', isAcmeDomain)
  ajv.addFormat('https-url', isHttpsUrl)
  ajv.addFormat('proxy-header', isProxyHeader)
  ajv.addFormat('day-or-instant', isDayOrInstant)
  ajv.addFormat('time-zone', isTimeZone)
  ajv.addFormat('webhook-url', isWebhookUrl)
  ajv.addFormat('webhook-secret', isWebhookSecret)
  ajv.addKeyword({
    keyword: 'hidden',
    type: 'string',
    modifying: true,
    validate: (as: HiddenAs, text: string, _schema?: object, context?: DataValidationCxt) => {
      // What its format refuses is reported for that.
      if (as === 'secret' || isWebhookUrl(text)) replaceValue(context, hidden(text, as))
      return true
    },
  })
  ajv.addKeyword({
    keyword: 'duration',
    type: 'string',
    modifying: true,
    validate: (bounds: DurationBounds, text: string, _schema?: object, context?: DataValidationCxt) => {
      const ms = durationWithin(text, bounds)
      if (ms !== undefined) replaceValue(context, ms)
      return ms !== undefined
    },
  })
  ajv.addKeyword({
    keyword: 'percent',
    type: 'string',
    modifying: true,
    validate: (bounds: PercentBounds, text: string, _schema?: object, context?: DataValidationCxt) => {
      const percent = percentWithin(text, bounds)
      if (percent !== undefined) replaceValue(context, percent)
      return percent !== undefined
    },
  })
  ajv.addKeyword({
    keyword: 'size',
    type: 'string',
    modifying: true,
    validate: (_size: true, text: string, _schema?: object, context?: DataValidationCxt) => {
      const bytes = parseSize(text)
      if (bytes !== undefined) replaceValue(context, bytes)
      // A text that is no size does not match the pattern, either.
      return true
    },
  })
  ajv.addKeyword({
    keyword: 'shorthand',
    type: 'string',
    modifying: true,
    validate: (shorthand: Shorthand, text: string, _schema?: object, context?: DataValidationCxt) => {
      if (Object.hasOwn(shorthand, text)) replaceValue(context, { ...shorthand[text] })
      return true
    },
  })
  return ajv
}

function replaceValue(context: DataValidationCxt | undefined, value: unknown): void {
  if (context !== undefined) context.parentData[context.parentDataProperty] = value
}
