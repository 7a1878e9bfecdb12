/** Which of a Redis Cluster's slots keeps a key (Redis Cluster specification, 'Key distribution model'). */

const SLOTS = 16_384
/** CRC-16/XMODEM. */
const POLYNOMIAL = 0x1021

export function hashSlot(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(hashTag(key) ?? key)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1
  }
  return (crc & 0xffff) % SLOTS
}

/** The text between the first `{` and the next `}`, unless it is empty: only that decides the slot of such a key. */
export function hashTag(key: string): string | undefined {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  return close > open + 1 ? key.slice(open + 1, close) : undefined
}
