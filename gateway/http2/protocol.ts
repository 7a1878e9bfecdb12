/** The numbers of HTTP/2 (RFC 9113 sections 3.4, 4.1, 6 and 7). */

/** What a client sends first. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** Bytes before each frame's payload: its length, type, flags and stream. */
export const FRAME_HEAD_BYTES = 9
/** The largest payload, both ways: the default, which every peer accepts. */
export const MAX_PAYLOAD = 16_384
/** The largest value of 31 bits: of a flow-control window, and of a stream's number. */
export const MAX_31_BITS = 0x7fff_ffff
export const DEFAULT_WINDOW = 65_535

export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const SETTINGS = 4
export const PUSH_PROMISE = 5
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

/** Flags of frames. */
export const ACK = 0x1
export const END_STREAM = 0x1
export const END_HEADERS = 0x4
export const PADDED = 0x8
export const HAS_PRIORITY = 0x20

/** Error codes. */
export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const INTERNAL_ERROR = 2
export const FLOW_CONTROL_ERROR = 3
export const STREAM_CLOSED = 5
export const FRAME_SIZE_ERROR = 6
export const REFUSED_STREAM = 7
export const CANCEL = 8
export const COMPRESSION_ERROR = 9
export const ENHANCE_YOUR_CALM = 11

/** Settings. */
export const HEADER_TABLE_SIZE = 1
export const ENABLE_PUSH = 2
export const MAX_CONCURRENT_STREAMS = 3
export const INITIAL_WINDOW_SIZE = 4
export const MAX_FRAME_SIZE = 5
export const MAX_HEADER_LIST_SIZE = 6
