/**
 * @boxyhq/saml-jackson on its own SQL store, a SQLite file, behind a minimal HTTP server for SCIM. Prints where its
 * directory is. JOURNAL is the journal mode of its database; the default is `delete`.
 */
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

const { MODULES = '', FOLDER = '', JOURNAL } = process.env

const installed = createRequire(MODULES)
const Database = installed('better-sqlite3')
const { controllers } = installed('@boxyhq/saml-jackson')

const file = join(FOLDER, 'jackson.db')
// The journal mode is a property of the file; jackson itself sets none.
const made = new Database(file)
made.pragma(`journal_mode = ${JOURNAL}`)
made.close()

const silent = () => undefined
const { directorySyncController } = await controllers({
  externalUrl: 'http://127.0.0.1',
  samlPath: '/api/oauth/saml',
  noAnalytics: true,
  logger: { info: silent, warn: silent, error: silent },
  db: { engine: 'sql', type: 'sqlite', url: file },
})
const { data: directory } = await directorySyncController.directories.create({
  tenant: 'bench',
  product: 'bench',
  type: 'generic-scim-v2',
})

const server = createServer((request, response) => {
  const answer = async () => {
    try {
      const text = (await request.toArray()).join('')
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
      const [, , , , directoryId, resourceType, resourceId] = pathname.split('/')
      const number = (name: string) => (searchParams.has(name) ? Number(searchParams.get(name)) : undefined)
      const { status, data } = await directorySyncController.requests.handle({
        method: request.method,
        body: text === '' ? undefined : JSON.parse(text),
        directoryId,
        resourceType,
        resourceId,
        apiSecret: request.headers.authorization?.slice('Bearer '.length),
        query: {
          count: number('count'),
          startIndex: number('startIndex'),
          filter: searchParams.get('filter') ?? undefined,
        },
      })
      response.writeHead(status, { 'content-type': 'application/scim+json' }).end(JSON.stringify(data))
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  }
  answer()
})
server.listen(0, '127.0.0.1', () => {
  const { path, secret } = directory.scim
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port, path, secret }))
})
