/** Parses requests for the judges' upstream, verbatim and one at a time. */

/** Calls `take` with each request of a socket: method, target, fields (names in lowercase), body, isLast. */
export function readRequests(socket, take) {
  let unread = Buffer.alloc(0)
  let request
  const next = () => {
    request ??= readHead()
    if (request === undefined) return false
    const body = request.isChunked ? readChunks(unread) : readLength(unread, request.length)
    if (body === undefined) return false
    const { method, target, fields, isLast } = request
    unread = unread.subarray(body.size)
    request = undefined
    take({ method, target, fields, isLast, body: body.bytes })
    return true
  }
  const readHead = () => {
    const end = unread.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [line, ...lines] = unread.subarray(0, end).toString('latin1').split('\r\n')
    unread = unread.subarray(end + 4)
    const [method, target, version] = line.split(' ')
    const fields = lines.map(text => {
      const colon = text.indexOf(':')
      return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()]
    })
    const value = name => fields.find(([key]) => key === name)?.[1].toLowerCase()
    if (value('expect') === '100-continue') socket.write('HTTP/1.1 100 Continue\r\n\r\n')
    const connection = value('connection') ?? ''
    return {
      method,
      target,
      fields,
      isLast: version === 'HTTP/1.0' ? !connection.includes('keep-alive') : connection.includes('close'),
      isChunked: value('transfer-encoding') === 'chunked',
      length: Number(value('content-length') ?? 0),
    }
  }
  socket.on('data', chunk => {
    unread = Buffer.concat([unread, chunk])
    while (next());
  })
}

function readLength(bytes, length) {
  return bytes.length < length ? undefined : { bytes: bytes.subarray(0, length), size: length }
}

function readChunks(bytes) {
  const parts = []
  let at = 0
  for (;;) {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) return undefined
    const size = Number.parseInt(bytes.subarray(at, end).toString('latin1'), 16)
    at = end + 2
    if (size === 0) break
    if (bytes.length < at + size + 2) return undefined
    parts.push(bytes.subarray(at, at + size))
    at += size + 2
  }
  // After the last chunk: trailers, and the empty line.
  for (;;) {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) return undefined
    const isEmpty = end === at
    at = end + 2
    if (isEmpty) return { bytes: Buffer.concat(parts), size: at }
  }
}
