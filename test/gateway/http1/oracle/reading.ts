/** How a parser read the bytes of one connection, and whether two parsers read the same. */

export interface Message {
  /** Method, target and version; or version, status and reason. */
  readonly line: readonly string[]
  /** Names and values in turn, as sent. */
  readonly fields: readonly string[]
  /** What has arrived of it, as Latin-1. */
  body: string
  trailers: readonly string[]
  complete: boolean
}

export interface Reading {
  readonly messages: readonly Message[]
  /** Why the parser stopped; undefined when it did not. */
  readonly refused: string | undefined
  /** The last message was the last of the connection: what follows is not compared. */
  readonly over: boolean
}

/**
 * What is wrong with our reading, or undefined. Node may reject later, and we may reject earlier; but it must read
 * every message that we accept in the same way, and we must not wait for more where it sees a complete message.
 */
export function disagreement(ours: Reading, nodes: Reading): string | undefined {
  for (const [i, message] of ours.messages.entries()) {
    const other = nodes.messages[i]
    if (other === undefined) return `message ${i} is none for Node: ${nodes.refused}`
    for (const part of ['line', 'fields'] as const) {
      if (JSON.stringify(message[part]) !== JSON.stringify(other[part])) return `${part} of message ${i}`
    }
    if (nodes.over && i === nodes.messages.length - 1) return undefined
    if (message.complete) {
      if (!other.complete) return `the end of message ${i}, which Node does not see: ${nodes.refused}`
      if (message.body !== other.body) return `the body of message ${i}`
      if (JSON.stringify(message.trailers) !== JSON.stringify(other.trailers)) return `trailers of ${i}`
    } else if (!other.body.startsWith(message.body)) return `the begun body of message ${i}`
    else if (ours.refused === undefined) {
      if (other.complete) return `the end of message ${i}, which only Node sees`
      if (other.body !== message.body) return `the body of message ${i}, of which Node has more`
    }
  }
  if (ours.refused !== undefined || ours.over) return undefined
  return nodes.messages.length > ours.messages.length ? 'a message that only Node sees' : undefined
}
