import { randomUUID } from 'node:crypto'
import type { Directory } from '../model.js'
import { viewConnection } from './event.js'
import { type Message, toMessages } from './message.js'

/**
 * A message to test a webhook. It is not an event of the directory, so its sequence is 0. `batchSize` as in
 * `toMessages`.
 */
export function testMessage(directory: Directory, batchSize: number | undefined): Message {
  const { id: directory_id, tenant, product } = directory
  const [id, created] = [`evt_${randomUUID()}`, new Date().toISOString()]
  const event = { event: 'webhook.test', tenant, product, directory_id, data: viewConnection(directory) }
  const body = JSON.stringify({ ...event, id, created_at: created, sequence: 0 })
  const [message] = toMessages([{ id, sequence: 0, created, body }], batchSize)
  return message as Message
}
