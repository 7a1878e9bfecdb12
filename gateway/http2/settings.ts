/** SETTINGS of the peer (RFC 9113 section 6.5). */
import { ConnectionError, floodError } from './errors.js'
import { uint32At } from './frame-reader.js'
import {
  ENABLE_PUSH,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  HEADER_TABLE_SIZE,
  INITIAL_WINDOW_SIZE,
  MAX_31_BITS,
  MAX_CONCURRENT_STREAMS,
  MAX_FRAME_SIZE,
  MAX_PAYLOAD,
  PROTOCOL_ERROR,
} from './protocol.js'

const SETTING_BYTES = 6
/** There are fewer than ten; a frame has room for 2,730. */
const MOST_IN_A_FRAME = 32
const LARGEST_FRAME_SIZE = 16_777_215

const MATTERING = new Set([ENABLE_PUSH, INITIAL_WINDOW_SIZE, HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS])

/** Calls `onSetting` for each setting of a frame that matters here. @throws {ConnectionError} */
export function readSettings(
  bytes: Buffer,
  from: number,
  to: number,
  onSetting: (setting: number, value: number) => void,
): void {
  const length = to - from
  if (length % SETTING_BYTES !== 0) throw new ConnectionError(FRAME_SIZE_ERROR, 'settings cut short')
  if (length > MOST_IN_A_FRAME * SETTING_BYTES) throw floodError('settings')
  for (let at = from; at < to; at += SETTING_BYTES) {
    const setting = ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
    const value = uint32At(bytes, at + 2)
    check(setting, value)
    if (MATTERING.has(setting)) onSetting(setting, value)
  }
}

function check(setting: number, value: number): void {
  if (setting === ENABLE_PUSH && value > 1) throw new ConnectionError(PROTOCOL_ERROR, 'ENABLE_PUSH')
  if (setting === INITIAL_WINDOW_SIZE && value > MAX_31_BITS) {
    throw new ConnectionError(FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE')
  }
  // Frames of ours are never larger than the default, so the value itself does not matter.
  if (setting === MAX_FRAME_SIZE && (value < MAX_PAYLOAD || value > LARGEST_FRAME_SIZE)) {
    throw new ConnectionError(PROTOCOL_ERROR, 'MAX_FRAME_SIZE')
  }
}
