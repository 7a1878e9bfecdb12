/** Reads a `text/event-stream` (WHATWG HTML, "Server-sent events"), in the form that this port writes. */

export interface StreamEvent {
  readonly event: string
  readonly data: string
}

/** Longer than any snapshot: an event that never ends must not fill the memory. */
const MAX_CHARACTERS = 16 * 1024 * 1024

/** The events of a stream, and undefined for each comment, which shows that the connection is alive. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<StreamEvent | undefined, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      if (rest.length > MAX_CHARACTERS) throw new Error('An event is too long.')
      const blocks = rest.split('\n\n')
      rest = blocks.pop() as string
      for (const block of blocks) yield eventOf(block)
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

function eventOf(block: string): StreamEvent | undefined {
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^(event|data): ?(.*)$/.exec(line) ?? []
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n') }
}
