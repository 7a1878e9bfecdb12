/** `sluice keys`: the API keys of projects, in the file that `apiKeys` of gateway.yaml names. */
import { fileBeside, gatewayFileOf } from '../../config/files.js'
import { loadConfig } from '../../config/load.js'
import { listProblems } from '../../config/problem.js'
import { parseDuration } from '../../config/schema/duration.js'
import { Failure } from '../../gateway/errors.js'
import { type ApiKey, isKeyName, isScope, newKey, stateOf } from '../../gateway/identify/api-keys/key-file.js'
import { pluginSchemas } from '../../gateway/plugins.js'
import { type Arguments, CONFIG, defineCommand, Unusable } from '../command.js'
import type { Io } from '../io.js'
import { changeKeyFile, readKeyFile } from './file.js'
import { listKeys, listLiveKeys } from './list.js'

const OPTIONS = {
  config: CONFIG,
  project: { type: 'string', value: 'ID', help: 'add: the project of the key; list: only its keys' },
  name: { type: 'string', value: 'NAME', help: 'add: what the key is for' },
  expires: {
    type: 'string',
    value: 'TIME',
    help: 'add, rotate: when it ends, such as 90d; default never; rotate: as long as the old key was made for',
  },
  scope: {
    type: 'string',
    value: 'SCOPE',
    multiple: true,
    help: 'add: what it allows, for routes with "scopes"',
  },
  overlap: {
    type: 'string',
    value: 'TIME',
    default: '0s',
    help: 'rotate: how long the old key still works, such as 7d',
  },
  live: {
    type: 'string',
    value: 'WHERE',
    help: 'list: with the last use of each key, from the running gateway at this admin address or configuration',
  },
  json: { type: 'boolean', help: 'one JSON object instead of text' },
} as const

export const keys = defineCommand({
  name: 'keys',
  summary: 'Make, list, revoke and rotate the API keys of projects',
  operands: { usage: 'add | list | revoke KEY | rotate KEY', least: 1, most: 2 },
  options: OPTIONS,
  details: `KEY is the id of a key, its name or its beginning. The file is the one that "apiKeys" of gateway.yaml names; it holds
hashes, so a key is shown once, when it is made. Running gateways read the file again within seconds.`,
  example: 'sluice keys add --project acme --name ci --expires 90d',
  async run(args, io) {
    const [action, named] = args.positionals
    const act = ACTIONS[action as keyof typeof ACTIONS]
    if (act === undefined || !Object.hasOwn(ACTIONS, action as string)) {
      throw new Unusable('"keys" knows add, list, revoke and rotate.')
    }
    const needsKey = action === 'revoke' || action === 'rotate'
    if (needsKey !== (named !== undefined))
      throw new Unusable(needsKey ? `Which key? "keys ${action} KEY".` : `"keys ${action}" takes no KEY.`)
    await act(settingsOf(args.values.config, io), args, io)
    return 0
  },
})

interface Settings {
  readonly file: string
  readonly projects: ReadonlySet<string>
}

type Act = (settings: Settings, args: Arguments<typeof OPTIONS>, io: Io) => void | Promise<void>

/** Plugins of others are not loaded: nothing here depends on them. */
function settingsOf(path: string, io: Io): Settings {
  const loaded = loadConfig(path, { env: io.env, plugins: pluginSchemas })
  if ('problems' in loaded) throw new Failure(listProblems(loaded.problems))
  const { gateway, projects } = loaded.config
  if (gateway.apiKeys === undefined) {
    throw new Failure(
      `gateway.yaml names no file for keys: add "apiKeys: api-keys.json" to it, and api-key to "identify".`,
    )
  }
  const file = fileBeside(gatewayFileOf(path), gateway.apiKeys)
  return { file, projects: new Set(projects.map(({ id }) => id)) }
}

const add: Act = ({ file, projects }, { values }, io) => {
  const { project, name, scope = [] } = values
  if (project === undefined || name === undefined)
    throw new Unusable('"keys add" needs --project and --name.')
  if (!projects.has(project)) throw new Failure(`There is no project "${project}" in projects.yaml.`)
  if (!isKeyName(name)) throw new Unusable('A name has up to 64 letters, digits, spaces, ".", "_" and "-".')
  const wrong = scope.find(one => !isScope(one))
  if (wrong !== undefined) throw new Unusable(`"${wrong}" is no scope.`)
  const now = new Date()
  const made = newKey({ project, name, scopes: [...scope], ...ending(values.expires, now) }, now)
  changeKeyFile(file, before => {
    if (before.keys.some(one => one.project === project && one.name === name && isActive(one, now))) {
      throw new Failure(`${project} has a key "${name}" already: rotate it, or choose another name.`)
    }
    return { ...before, keys: [...before.keys, made.entry] }
  })
  show(made, io, values.json)
}

const rotate: Act = ({ file }, { values, positionals: [, named = ''] }, io) => {
  const now = new Date()
  const overlapMs = msOf(values.overlap, '--overlap')
  let made: ReturnType<typeof newKey> | undefined
  changeKeyFile(file, before => {
    const old = find(before.keys, named, now)
    const { project, name, scopes } = old
    made = newKey(
      { project, name, scopes, ...(values.expires ? ending(values.expires, now) : asLong(old, now)) },
      now,
    )
    const until = new Date(now.getTime() + overlapMs).toISOString()
    const ended =
      overlapMs === 0 ? { ...old, revoked: until } : { ...old, expires: earlier(old.expires, until) }
    return { ...before, keys: [...before.keys.map(one => (one.id === old.id ? ended : one)), made.entry] }
  })
  show(made as ReturnType<typeof newKey>, io, values.json)
}

const revoke: Act = ({ file }, { values, positionals: [, named = ''] }, io) => {
  const now = new Date()
  let revoked: ApiKey | undefined
  changeKeyFile(file, before => {
    const key = find(before.keys, named, now)
    revoked = { ...key, revoked: now.toISOString() }
    return { ...before, keys: before.keys.map(one => (one.id === key.id ? (revoked as ApiKey) : one)) }
  })
  const { id, project, name } = revoked as ApiKey
  io.out(
    values.json
      ? `${JSON.stringify({ id, project, name, state: 'revoked' })}\n`
      : `Key ${id} (${name} of ${project}) is revoked.\n`,
  )
}

const list: Act = ({ file }, { values: { project, json, live } }, io) => {
  if (live !== undefined) return listLiveKeys(live, project, json === true, io)
  return listKeys(readKeyFile(file).keys, project, json === true, io)
}

const ACTIONS = { add, list, revoke, rotate } as const

function show({ key, entry }: ReturnType<typeof newKey>, io: Io, json: boolean | undefined): void {
  const { hash: _, ...rest } = entry
  if (json) io.out(`${JSON.stringify({ key, ...rest })}\n`)
  else {
    io.err(`Key ${entry.id} (${entry.name} of ${entry.project}), shown this once:\n`)
    io.out(`${key}\n`)
  }
}

/** By id, by the beginning of the key, or by a name that only one active key has. */
function find(keys: readonly ApiKey[], named: string, now: Date): ApiKey {
  const exact = keys.find(({ id, prefix }) => id === named || prefix === named)
  const found = exact ? [exact] : keys.filter(one => one.name === named && isActive(one, now))
  const [key] = found
  if (key === undefined)
    throw new Failure(`No key that works is called "${named}": "sluice keys list" shows them.`)
  if (found.length > 1) throw new Failure(`${found.length} keys are called "${named}": give the id of one.`)
  if (!isActive(key, now)) throw new Failure(`Key ${key.id} is ${stateOf(key, now.getTime())} already.`)
  return key
}

const isActive = (key: ApiKey, now: Date): boolean => stateOf(key, now.getTime()) === 'active'
const earlier = (one: string | undefined, other: string): string =>
  one !== undefined && one < other ? one : other

/** The end of a key that lives as long as an old one was made for: who rotates a key near its end wants no other so near. */
function asLong({ created, expires }: ApiKey, now: Date): { expires?: string } {
  if (expires === undefined) return {}
  return { expires: new Date(now.getTime() + Date.parse(expires) - Date.parse(created)).toISOString() }
}

function ending(text: string | undefined, now: Date): { expires?: string } {
  if (text === undefined) return {}
  const ms = msOf(text, '--expires')
  if (ms === 0) throw new Unusable('--expires takes a time above 0.')
  return { expires: new Date(now.getTime() + ms).toISOString() }
}

function msOf(text: string, option: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    throw new Unusable(`${option}: ${(error as Error).message}`)
  }
}
