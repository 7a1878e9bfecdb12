/**
 * Directory sync inside your own server: SCIM requests come in through a route of yours, the changes come back as events to
 * a function of yours. Build first (`npm run build`), then run `node examples/in-process.mjs`.
 *
 * DATA_DIR (default ./data/example) holds the embedded database and its key; with MONGODB_URL the data goes there.
 */
import { createServer } from 'node:http'
import { open } from 'sluicegate/directory'

const silent = () => undefined
const complain = (fields, message) => console.error(message, fields)
const log = { debug: silent, info: silent, warn: complain, error: complain }
const directorySync = await open({ env: { DATA_DIR: './data/example', ...process.env }, log })

// One directory for each customer who connects an identity provider.
const { data: directory, error } = await directorySync.directories.create({
  name: 'Acme people',
  tenant: 'acme',
  product: 'crm',
  type: 'okta-scim-v2',
})
if (error) throw new Error(error.message)

// Called once the change is stored, and waited for before the identity provider gets its answer.
async function onEvent({ event, data, sequence }) {
  console.log(JSON.stringify({ sequence, event, email: data.email, group: data.group?.name }))
}

// The handler refuses a body of more than 1 MiB; what comes after that need not be kept.
async function readBody(request) {
  const chunks = []
  let bytes = 0
  for await (const chunk of request) {
    if (bytes <= 2 ** 20) chunks.push(chunk)
    bytes += chunk.length
  }
  return Buffer.concat(chunks).toString('utf8') || undefined
}

const number = text => (text === null ? undefined : Number(text))

const server = createServer(async (request, response) => {
  try {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    const [, , directoryId = '', resourceType = '', resourceId = ''] = pathname
      .split('/')
      .map(decodeURIComponent)
    const { status, data } = await directorySync.handle(
      {
        method: request.method ?? 'GET',
        body: await readBody(request),
        directoryId,
        resourceType,
        resourceId,
        apiSecret: request.headers.authorization?.replace(/^bearer +/i, '') ?? '',
        query: {
          count: number(searchParams.get('count')),
          startIndex: number(searchParams.get('startIndex')),
          filter: searchParams.get('filter') ?? undefined,
        },
      },
      onEvent,
    )
    response.writeHead(status, { 'content-type': 'application/scim+json' })
    response.end(data === null ? undefined : JSON.stringify(data))
  } catch (failure) {
    console.error(failure)
    response.writeHead(500).end()
  }
})

server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const { port } = server.address()
  const endpoint = `http://127.0.0.1:${port}/scim/${directory.id}`
  console.log(JSON.stringify({ endpoint, secret: directory.scim.secret }))
})

process.once('SIGTERM', () => {
  server.close()
  server.closeIdleConnections()
  directorySync.close()
})
