/**
 * The directory service as shipped, without the gateway in front. Prints its management key and its first directory's
 * path.
 */
import { start } from '../../../services/directory/index.js'

const silent = () => undefined
const log = { debug: silent, info: silent, warn: console.error, error: console.error }
const key = 'bench-key-0123456789'
const service = await start({ env: { ...process.env, API_KEYS: key }, log })
const answer = await fetch(`${service.url}/api/v1/directory-sync`, {
  method: 'POST',
  headers: { authorization: `Api-Key ${key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ tenant: 'bench', product: 'bench' }),
})
const { data } = (await answer.json()) as { data: { scim: object } }
console.log(JSON.stringify({ port: Number(new URL(service.url).port), key, ...data.scim }))
