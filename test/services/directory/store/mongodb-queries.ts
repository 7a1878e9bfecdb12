/** Records every query of MongoDB clients, and finds those that no index serves. */
import { type Document, MongoClient } from 'mongodb'
import type { Test } from 'tap'

interface Query {
  collection: string
  command: string
  filter: Document
  sort: Document
}

/**
 * Records the queries of clients that connect during the test and have `monitorCommands=true` in their URL. Each kind
 * of query is kept once, whatever its values.
 */
export function hearQueries(t: Test): Map<string, Query> {
  const heard = new Map<string, Query>()
  const connect = MongoClient.prototype.connect
  t.teardown(() => {
    MongoClient.prototype.connect = connect
  })
  MongoClient.prototype.connect = function (this: MongoClient) {
    this.on('commandStarted', ({ commandName, command }) => {
      for (const query of queriesOf(commandName, command)) heard.set(formOf(query), query)
    })
    return connect.call(this)
  }
  return heard
}

/** The queries in a command of the wire protocol; inserts and administrative commands have none. */
function queriesOf(name: string, command: Document): Query[] {
  const about = (filter: Document = {}, sort: Document | Map<string, number> = {}): Query => ({
    collection: command[name],
    command: name,
    filter,
    sort: sort instanceof Map ? Object.fromEntries(sort) : sort,
  })
  switch (name) {
    case 'find':
      return [about(command.filter, command.sort)]
    case 'update':
      return command.updates.map((update: Document) => about(update.q))
    case 'delete':
      return command.deletes.map((deletion: Document) => about(deletion.q))
    case 'aggregate':
      return [about(command.pipeline[0].$match)]
    case 'distinct':
      return [about(command.query, { [command.key]: 1 })]
    case 'findAndModify':
      return [about(command.query, command.sort)]
    default:
      return []
  }
}

const isRange = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).some(key => /^\$(gte?|lte?|exists)$/.test(key))

const fieldsOf = (filter: Document): string[] => Object.keys(filter).filter(name => !name.startsWith('$'))

/** The query without its values. */
export const formOf = ({ collection, command, filter, sort }: Query): string =>
  `${command} ${collection} {${fieldsOf(filter).map(name => (isRange(filter[name]) ? `${name}<>` : name))}} by {${Object.keys(sort)}}`

/**
 * Whether an index serves the query: it begins with all fields that are compared for equality, and continues with the
 * sort in its order (all of it forwards or all backwards), else with a range. Equality with `_id` needs no other index.
 */
export function isServed({ filter, sort }: Query, indexes: readonly Document[]): boolean {
  const fields = fieldsOf(filter)
  const equal = new Set(fields.filter(name => !isRange(filter[name])))
  if (equal.has('_id')) return true
  const sorted = Object.entries(sort).filter(([name]) => !equal.has(name))
  return indexes.some(key => {
    const names = Object.keys(key)
    const begin = names.slice(0, equal.size)
    const rest = names.slice(equal.size)
    if (!begin.every(name => equal.has(name))) return false
    const turns = new Set(sorted.map(([name, way]) => way * key[name]))
    const sorts = sorted.every(([name], index) => rest[index] === name) && turns.size <= 1
    return sorts && (equal.size > 0 || sorted.length > 0 || fields.includes(names[0] ?? ''))
  })
}
