/** ClientHello messages (RFC 8446 section 4.1.2), written and parsed independently of the code under test. */
import { createHash } from 'node:crypto'

type Extension = readonly [id: number, data?: Buffer]

const u8 = (...values: number[]): Buffer => Buffer.from(values)
const u16 = (...values: number[]): Buffer => Buffer.from(values.flatMap(value => [value >> 8, value & 255]))
const sized8 = (data: Buffer): Buffer => Buffer.concat([u8(data.length), data])
const sized16 = (data: Buffer): Buffer => Buffer.concat([u16(data.length), data])

export const SERVER_NAME = (name: string): Extension => [
  0,
  sized16(Buffer.concat([u8(0), sized16(Buffer.from(name))])),
]
export const GROUPS = (...groups: number[]): Extension => [10, sized16(u16(...groups))]
export const POINT_FORMATS = (...formats: number[]): Extension => [11, sized8(u8(...formats))]
export const SIGNATURES = (...algorithms: number[]): Extension => [13, sized16(u16(...algorithms))]
export const ALPN = (...names: string[]): Extension => [
  16,
  sized16(Buffer.concat(names.map(name => sized8(Buffer.from(name))))),
]
export const VERSIONS = (...versions: number[]): Extension => [43, sized8(u16(...versions))]

/** The handshake message, without a record layer. */
export function helloMessage(version: number, ciphers: number[], extensions: readonly Extension[]): Buffer {
  const list = extensions.map(([id, data = Buffer.alloc(0)]) => Buffer.concat([u16(id), sized16(data)]))
  const body = Buffer.concat([
    u16(version),
    Buffer.alloc(32, 7),
    sized8(Buffer.alloc(32, 9)),
    sized16(u16(...ciphers)),
    sized8(u8(0)),
    sized16(Buffer.concat(list)),
  ])
  return Buffer.concat([u8(1, 0), sized16(body)])
}

/** The message cut into records of at most `size` bytes. */
export function records(message: Buffer, size = 16_384): Buffer {
  const cut: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    cut.push(u8(22, 3, 1), sized16(message.subarray(at, at + size)))
  }
  return Buffer.concat(cut)
}

/** JA3 and JA4 according to their published descriptions, from the first record of a connection. */
export function fingerprintsByHand(bytes: Buffer): { ja3: string; ja4: string } {
  let at = 9
  const take = (length: number): Buffer => {
    at += length
    return bytes.subarray(at - length, at)
  }
  const number = (length: number): number => take(length).readUIntBE(0, length)
  const pairs = (data: Buffer): number[] =>
    Array.from({ length: data.length / 2 }, (_, i) => data.readUInt16BE(i * 2))
  const known = (value: number): boolean => (value & 0x0f0f) !== 0x0a0a

  const version = number(2)
  take(32)
  take(number(1))
  const ciphers = pairs(take(number(2))).filter(known)
  take(number(1))
  const end = number(2) + at
  const extensions = new Map<number, Buffer>()
  while (at < end) extensions.set(number(2), take(number(2)))

  const ids = [...extensions.keys()].filter(known)
  const groups = pairs((extensions.get(10) ?? Buffer.alloc(2)).subarray(2)).filter(known)
  const formats = [...(extensions.get(11) ?? Buffer.alloc(1)).subarray(1)]
  const ja3 = [version, ...[ciphers, ids, groups, formats].map(list => list.join('-'))].join(',')

  const hex = (values: number[]): string[] => values.map(value => value.toString(16).padStart(4, '0'))
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)
  const count = (list: number[]): string => String(list.length).padStart(2, '0')
  const protocol =
    extensions
      .get(16)
      ?.subarray(3, 3 + (extensions.get(16)?.[2] ?? 0))
      .toString() ?? ''
  const alpn = protocol === '' ? '00' : `${protocol[0]}${protocol.at(-1)}`
  const newest = extensions.has(43) ? '13' : '12'
  const signatures = hex(pairs((extensions.get(13) ?? Buffer.alloc(2)).subarray(2)))
  const rest = hex(ids.filter(id => id !== 0 && id !== 16)).sort()
  const ja4 = [
    `t${newest}${extensions.has(0) ? 'd' : 'i'}${count(ciphers)}${count(ids)}${alpn}`,
    hash(hex(ciphers).sort().join(',')),
    hash([rest.join(','), signatures.join(',')].filter(Boolean).join('_')),
  ]
  return { ja3: createHash('md5').update(ja3).digest('hex'), ja4: ja4.join('_') }
}
