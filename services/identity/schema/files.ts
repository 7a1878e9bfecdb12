/** The schemas of this service, and which of them each project uses. */
import { type Dirent, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, type JsonObject, type JsonValue } from '../../json.js'
import { type CompiledSchema, compileSchema } from './schema.js'

/** In a folder of schemas: the schema's id by project. */
const CHOICE_FILE = 'projects.json'
/** Stands for every project that the choice file does not name. */
const OTHERS = '*'

/** Which schema each project's identities follow. */
export interface Schemas {
  of(project: string): CompiledSchema
  /** Schemas by project, with `*` for all projects that are not named. */
  readonly chosen: ReadonlyMap<string, CompiledSchema>
}

/**
 * Reads `path`: one schema for every project, or a folder of schemas (`*.json`) in which `projects.json` assigns them
 * to projects. Throws an Error with a sentence that names the file.
 */
export function readSchemas(path: string): Schemas {
  if (!isFolder(path)) return choose(new Map([[OTHERS, readSchema(path)]]))
  const files = entriesOf(path)
    .filter(entry => !entry.isDirectory() && entry.name.endsWith('.json') && entry.name !== CHOICE_FILE)
    .map(entry => join(path, entry.name))
    .sort()
  const byId = new Map<string, CompiledSchema>()
  for (const file of files) {
    const schema = readSchema(file)
    if (byId.has(schema.id)) {
      throw new Error(
        `identity schema ${file}: another file has the id "${schema.id}" too; give each its own $id`,
      )
    }
    byId.set(schema.id, schema)
  }
  const [first, ...more] = byId.values()
  if (!first) throw new Error(`the folder ${path} (IDENTITY_SCHEMA) holds no schema; put a .json file there`)
  const choice = join(path, CHOICE_FILE)
  if (existsSync(choice)) return choose(readChoice(choice, byId))
  if (more.length === 0) return choose(new Map([[OTHERS, first]]))
  throw new Error(
    `the folder ${path} (IDENTITY_SCHEMA) holds several schemas; say which project has which in ${CHOICE_FILE}, such as {"${OTHERS}": "${first.id}"}`,
  )
}

function choose(chosen: ReadonlyMap<string, CompiledSchema>): Schemas {
  const others = chosen.get(OTHERS) as CompiledSchema
  return { chosen, of: project => chosen.get(project) ?? others }
}

function readChoice(file: string, byId: ReadonlyMap<string, CompiledSchema>): Map<string, CompiledSchema> {
  const choice = readObject(file, 'schema choice')
  if (!Object.hasOwn(choice, OTHERS)) {
    throw new Error(`schema choice ${file}: "${OTHERS}" has to name the schema of every other project`)
  }
  return new Map(
    Object.entries(choice).map(([project, id]) => {
      const schema = typeof id === 'string' ? byId.get(id) : undefined
      if (!schema) {
        const known = [...byId.keys()].map(known => `"${known}"`).join(', ')
        throw new Error(`schema choice ${file}: "${project}" has to name one of the schemas ${known}`)
      }
      return [project, schema]
    }),
  )
}

function readSchema(file: string): CompiledSchema {
  const document = readObject(file, 'identity schema')
  try {
    return compileSchema(document)
  } catch (error) {
    throw new Error(`identity schema ${file}: ${(error as Error).message}`, { cause: error })
  }
}

function readObject(file: string, kind: string): JsonObject {
  const text = found(file, () => readFileSync(file, 'utf8'))
  let value: JsonValue
  try {
    value = JSON.parse(text) as JsonValue
  } catch (error) {
    throw new Error(`${kind} ${file}: ${(error as Error).message}`)
  }
  if (!isJsonObject(value)) throw new Error(`${kind} ${file}: has to be a JSON object`)
  return value
}

function isFolder(path: string): boolean {
  return found(path, () => statSync(path)).isDirectory()
}

function entriesOf(folder: string): Dirent[] {
  return found(folder, () => readdirSync(folder, { withFileTypes: true }))
}

function found<Result>(path: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw new Error(
      `identity schema ${path} cannot be read (${(error as Error).message}); set IDENTITY_SCHEMA`,
    )
  }
}
