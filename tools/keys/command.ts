/** `sluice keys`: the API keys of projects, in the file that `apiKeys` of gateway.yaml names. */
import { fileBeside, gatewayFileOf } from '../../config/files.js'
import { besideOf } from '../../config/load.js'
import { readSetting } from '../../config/one-setting.js'
import { listProblems } from '../../config/problem.js'
import { parseDuration } from '../../config/schema/duration.js'
import { Failure } from '../../gateway/errors.js'
import {
  type ApiKey,
  isKey,
  isKeyName,
  isScope,
  newKey,
  stateOf,
  withoutSecret,
} from '../../gateway/identify/api-keys/key-file.js'
import { type Arguments, CONFIG, defineCommand, Unusable } from '../command.js'
import type { Io } from '../io.js'
import { printable } from '../text.js'
import { changeKeyFile, readKeyFile } from './file.js'
import { listKeys, listLiveKeys } from './list.js'

const OPTIONS = {
  config: CONFIG,
  project: { type: 'string', value: 'ID', help: 'add: the project of the key; others: only its keys' },
  name: { type: 'string', value: 'NAME', help: 'add: what the key is for' },
  expires: {
    type: 'string',
    value: 'TIME',
    help: 'add, rotate: when it ends, such as 90d, at most 36500d; default never; rotate: as long as the old key was made for',
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
    help: 'rotate: how long the old key still works, such as 7d; default not at all',
  },
  live: {
    type: 'string',
    value: 'WHERE',
    help: 'list: with the last use of each key, from the running gateway at this admin address or configuration',
  },
  file: {
    type: 'string',
    value: 'FILE',
    help: 'list, revoke: the file of keys itself, where gateway.yaml cannot be read',
  },
  json: { type: 'boolean', help: 'one JSON object instead of text' },
} as const

export const keys = defineCommand({
  name: 'keys',
  summary: 'Make, list, revoke and rotate the API keys of projects',
  operands: { usage: 'add | list | revoke KEY | rotate KEY', least: 1, most: 2 },
  options: OPTIONS,
  details: `KEY is the id of a key, its name, its beginning or the whole of it. The file is the one that "apiKeys" of gateway.yaml names; it holds
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
    refuseOthers(action as keyof typeof ACTIONS, args)
    await act(args, io)
    return 0
  },
})

/** The options of each action, beside --config and --json. */
const TAKES = {
  add: ['project', 'name', 'expires', 'scope'],
  list: ['project', 'live', 'file'],
  revoke: ['project', 'file'],
  rotate: ['project', 'expires', 'overlap'],
} as const

/** An option that is ignored may have been meant to narrow what is revoked. */
function refuseOthers(action: keyof typeof TAKES, { values }: Arguments<typeof OPTIONS>): void {
  const takes: readonly string[] = ['config', 'json', ...TAKES[action]]
  const other = Object.entries(values).find(([name, value]) => !takes.includes(name) && isGiven(value))
  if (other !== undefined) throw new Unusable(`"keys ${action}" takes no --${other[0]}.`)
}

const isGiven = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false

type Act = (args: Arguments<typeof OPTIONS>, io: Io) => void | Promise<void>

/** The file of keys. Nothing else of the configuration is read: a key must be revocable whatever else is wrong with it. */
function keyFileOf({ config, file }: { config: string; file?: string | undefined }, { env }: Io): string {
  if (file !== undefined) return file
  const gatewayFile = gatewayFileOf(config)
  const named = settingIn(gatewayFile, 'apiKeys', env)
  if (typeof named === 'string' && named !== '') return fileBeside(gatewayFile, named)
  throw new Failure(
    'gateway.yaml names no file for keys: add "apiKeys: api-keys.json" to it, and api-key to "identify".',
  )
}

function checkProject(path: string, project: string, { env }: Io): void {
  const gatewayFile = gatewayFileOf(path)
  const projects = settingIn(gatewayFile, 'projects', env)
  const list = settingIn(besideOf(gatewayFile, { projects }, 'projects', 'projects.yaml'), 'projects', env)
  const isListed = Array.isArray(list) && list.some(one => one?.id === project)
  if (!isListed) throw new Failure(`There is no project "${shown(project)}" in projects.yaml.`)
}

function settingIn(file: string, key: string, env: Io['env']): unknown {
  const setting = readSetting(file, key, env)
  if ('problems' in setting) {
    const problems = listProblems(setting.problems)
    const help =
      key === 'apiKeys' ? '\n"list" and "revoke" can do without it: name the file with --file.' : ''
    throw new Failure(problems + help)
  }
  return setting.value
}

const add: Act = ({ values }, io) => {
  const { project, name, scope = [] } = values
  if (project === undefined || name === undefined)
    throw new Unusable('"keys add" needs --project and --name.')
  if (!isKeyName(name)) throw new Unusable('A name has up to 64 letters, digits, spaces, ".", "_" and "-".')
  const wrong = scope.find(one => !isScope(one))
  if (wrong !== undefined) throw new Unusable(`"${shown(wrong)}" is no scope.`)
  checkProject(values.config, project, io)
  const now = new Date()
  const made = newKey({ project, name, scopes: [...scope], ...ending(values.expires, now) }, now)
  changeKeyFile(keyFileOf(values, io), before => {
    if (before.some(one => one.project === project && one.name === name && isActive(one, now))) {
      throw new Failure(`${project} has a key "${name}" already: rotate it, or choose another name.`)
    }
    show(made, io, values.json)
    return [...before, made.entry]
  })
}

const rotate: Act = ({ values, positionals: [, named = ''] }, io) => {
  const now = new Date()
  const overlapMs = values.overlap === undefined ? 0 : msOf(values.overlap, '--overlap')
  changeKeyFile(keyFileOf(values, io), before => {
    const old = find(before, named, values.project, now)
    const { project, name, scopes } = old
    const made = newKey(
      { project, name, scopes, ...(values.expires ? ending(values.expires, now) : asLong(old, now)) },
      now,
    )
    const until = new Date(now.getTime() + overlapMs).toISOString()
    const ended =
      overlapMs === 0 ? { ...old, revoked: until } : { ...old, expires: earlier(old.expires, until) }
    show(made, io, values.json)
    return [...before.map(one => (one.id === old.id ? ended : one)), made.entry]
  })
}

const revoke: Act = ({ values, positionals: [, named = ''] }, io) => {
  const now = new Date()
  let revoked: ApiKey | undefined
  changeKeyFile(keyFileOf(values, io), before => {
    const key = find(before, named, values.project, now)
    revoked = { ...key, revoked: now.toISOString() }
    return before.map(one => (one.id === key.id ? (revoked as ApiKey) : one))
  })
  const { id, project, name } = revoked as ApiKey
  io.out(
    values.json
      ? `${JSON.stringify({ id, project, name, state: 'revoked' })}\n`
      : `Key ${id} (${name} of ${project}) is revoked.\n`,
  )
}

const list: Act = ({ values }, io) => {
  const { project, json, live } = values
  if (live !== undefined) return listLiveKeys(live, project, json === true, io)
  return listKeys(readKeyFile(keyFileOf(values, io)), project, json === true, io)
}

const ACTIONS = { add, list, revoke, rotate } as const

/** Called before the key counts: one that nobody has seen would be of no use, and what it replaces would be gone. */
function show({ key, entry }: ReturnType<typeof newKey>, io: Io, json: boolean | undefined): void {
  const { hash: _, ...rest } = entry
  if (json) io.outAtOnce(`${JSON.stringify({ key, ...rest })}\n`)
  else {
    io.err(`Key ${entry.id} (${entry.name} of ${entry.project}), shown this once:\n`)
    io.outAtOnce(`${key}\n`)
  }
}

/** By id, by the key or its beginning, or by a name that only one active key has; of one project or of all. */
function find(all: readonly ApiKey[], named: string, project: string | undefined, now: Date): ApiKey {
  const keys = all.filter(one => project === undefined || one.project === project)
  const exact = keys.find(one => one.id === named || isKey(named, one))
  if (exact !== undefined && isKey(named, exact) === 'another') {
    const { id, project: of, name, prefix } = exact
    throw new Failure(
      `That is another key than ${id} (${name} of ${of}), though both begin with ${prefix}: nothing was changed.`,
    )
  }
  const found = exact ? [exact] : keys.filter(one => one.name === named && isActive(one, now))
  const [key] = found
  if (key === undefined) {
    const of = project === undefined ? '' : ` of ${shown(project)}`
    throw new Failure(`No key${of} that works is called "${shown(named)}": "sluice keys list" shows them.`)
  }
  if (found.length > 1) {
    const projects = new Set(found.map(one => one.project))
    const help = projects.size > 1 ? 'give its --project, or the id of one' : 'give the id of one'
    throw new Failure(`${found.length} keys are called "${shown(named)}": ${help}.`)
  }
  if (!isActive(key, now)) throw new Failure(`Key ${key.id} is ${stateOf(key, now.getTime())} already.`)
  return key
}

/** What was given, for a message: somebody may give a key where none belongs. */
const shown = (given: string): string => printable(withoutSecret(given))

const isActive = (key: ApiKey, now: Date): boolean => stateOf(key, now.getTime()) === 'active'
const earlier = (one: string | undefined, other: string): string =>
  one !== undefined && one < other ? one : other

/** The end of a key that lives as long as an old one was made for: who rotates a key near its end wants no other so near. */
function asLong({ created, expires }: ApiKey, now: Date): { expires?: string } {
  if (expires === undefined) return {}
  const ms = Math.min(Date.parse(expires) - Date.parse(created), parseDuration(LONGEST))
  return { expires: new Date(now.getTime() + ms).toISOString() }
}

function ending(text: string | undefined, now: Date): { expires?: string } {
  if (text === undefined) return {}
  const ms = msOf(text, '--expires')
  if (ms === 0) throw new Unusable('--expires takes a time above 0.')
  return { expires: new Date(now.getTime() + ms).toISOString() }
}

/** A hundred years: times far beyond have no date. */
const LONGEST = '36500d'

function msOf(text: string, option: string): number {
  try {
    const ms = parseDuration(text)
    if (ms > parseDuration(LONGEST)) throw new RangeError(`"${text}" is too long: at most ${LONGEST}.`)
    return ms
  } catch (error) {
    throw new Unusable(`${option}: ${(error as Error).message.replace(text, shown(text))}`)
  }
}
