import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import { MongoClient } from 'mongodb'
import type { Test } from 'tap'
import { type ChildServer, findCommand, type ServerKind, serverFolders, startServer } from './child-server.js'
import { reportMissing } from './missing.js'

/**
 * The URL of a fresh, empty database on a MongoDB-protocol server, or undefined after reporting the test as
 * skipped (a failure in CI). Taken in this order: `MONGODB_URL`, a `mongod` or `ferretdb` on PATH or in
 * ../shared/bin, the FerretDB that `npm run services` builds. One server serves a whole test file.
 */
export async function mongoUrl(t: Test): Promise<string | undefined> {
  const given = process.env.MONGODB_URL
  const base = given ?? (await ownServer())
  if (base === undefined) {
    reportMissing(t, 'A MongoDB-protocol server', 'set MONGODB_URL, or build one with `npm run services`')
    return undefined
  }
  const url = withDatabase(base, `sluice_test_${randomBytes(6).toString('hex')}`)
  // Our own server is removed with its folder; on a borrowed one the database must be dropped.
  if (given) t.teardown(() => withClient(url, client => client.db().dropDatabase()))
  return url
}

/** `url` with its database replaced. Credentials are still looked up in the old one. */
function withDatabase(url: string, database: string): string {
  const [, start, old, query] = /^(\w+(?:\+srv)?:\/\/[^/?]+)\/?([^?]*)\??(.*)$/.exec(url) ?? []
  if (start === undefined) throw new Error('MONGODB_URL is not of the form mongodb://host:port/database')
  const options = new URLSearchParams(query)
  if (start.includes('@') && !options.has('authSource')) options.set('authSource', old || 'admin')
  return `${start}/${database}?${options}`
}

let server: Promise<ChildServer> | undefined

async function ownServer(): Promise<string | undefined> {
  server ??= startMongo()
  if (server === undefined) return undefined
  return `mongodb://127.0.0.1:${(await server).port}`
}

/** A server for the caller alone, to kill and start again; undefined when none is installed. */
export function startMongo(): Promise<ChildServer> | undefined {
  const command = findCommand(['mongod', 'ferretdb'], serverFolders)
  if (!command) return undefined
  return startServer(basename(command) === 'mongod' ? mongod(command) : ferretdb(command))
}

const mongod = (command: string): ServerKind => ({
  command,
  args: (port, folder) => ['--port', String(port), '--bind_ip', '127.0.0.1', '--dbpath', folder],
  answers,
})

const ferretdb = (command: string): ServerKind => ({
  command,
  args: () => [],
  env: (port, folder) => ({
    FERRETDB_LISTEN_ADDR: `127.0.0.1:${port}`,
    FERRETDB_HANDLER: 'sqlite',
    FERRETDB_SQLITE_URL: `file:${folder}/`,
    FERRETDB_STATE_DIR: folder,
    FERRETDB_TELEMETRY: 'disable',
  }),
  answers,
})

async function answers(port: number): Promise<boolean> {
  await withClient(`mongodb://127.0.0.1:${port}`, client => client.db('admin').command({ ping: 1 }))
  return true
}

async function withClient<T>(url: string, use: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 1000 })
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}
