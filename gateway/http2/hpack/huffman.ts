/** Decodes strings in HPACK's Huffman code (RFC 7541 section 5.2 and appendix B). Ours are sent plain, which costs less. */
import { CompressionError } from './compression-error.js'

/** The length in bits of each byte's code. Codes are numbered by length, then by byte. */
const LENGTHS = [
  '13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28',
  '6 10 10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10',
  '13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6',
  '15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28',
  '20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24',
  '22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 23',
  '26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27',
  '20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26',
].flatMap(line => line.split(' ').map(Number))

/** No code has more bits, so this many bits of padding would be a character left out: EOS (RFC 7541 section 5.2). */
const MOST_PADDING = 7

/** Of a state and four bits: the next state in the upper half, the byte that is complete in the lower. */
const STEP_BITS = 4
const EMITS = 0x100
const FAILS = 0x200

interface Machine {
  readonly steps: Uint32Array
  /** 1 for each state in which a string may end. */
  readonly accepts: Uint8Array
}

const { steps, accepts } = makeMachine()

/** Writes the decoded bytes to `target` and returns how many: at most 8 for each 5 of the code. @throws {CompressionError} */
export function decodeHuffman(code: Buffer, from: number, to: number, target: Buffer): number {
  let count = 0
  let state = 0
  for (let at = from; at < to; at++) {
    const byte = code[at] as number
    const first = steps[(state << STEP_BITS) | (byte >> STEP_BITS)] as number
    if ((first & EMITS) !== 0) target[count++] = first
    const second = steps[((first >>> 16) << STEP_BITS) | (byte & 0x0f)] as number
    if ((second & EMITS) !== 0) target[count++] = second
    if (((first | second) & FAILS) !== 0) throw new CompressionError('a code of no character')
    state = second >>> 16
  }
  if (accepts[state] !== 1) throw new CompressionError('the padding of a string')
  return count
}

/** A node of the code's tree: for each bit another node (from 0), a byte (-1 - byte), or nothing. */
type Node = [number | undefined, number | undefined]

function makeMachine(): Machine {
  const nodes = makeTree()
  const made: Machine = {
    steps: new Uint32Array(nodes.length << STEP_BITS),
    accepts: new Uint8Array(nodes.length),
  }
  for (let node = 0; node < nodes.length; node++) {
    for (let bits = 0; bits < 1 << STEP_BITS; bits++)
      made.steps[(node << STEP_BITS) | bits] = stepOf(nodes, node, bits)
  }
  let padded: number | undefined = 0
  for (let bits = 0; bits <= MOST_PADDING && padded !== undefined; bits++) {
    made.accepts[padded] = 1
    padded = nodes[padded]?.[1]
  }
  return made
}

function makeTree(): Node[] {
  const nodes: Node[] = [[undefined, undefined]]
  const bytes = LENGTHS.map((_, byte) => byte).sort((a, b) => lengthOf(a) - lengthOf(b) || a - b)
  let code = 0
  let length = lengthOf(bytes[0] as number)
  for (const byte of bytes) {
    code <<= lengthOf(byte) - length
    length = lengthOf(byte)
    let node = 0
    for (let bit = length - 1; bit >= 0; bit--) {
      const side = (code >>> bit) & 1
      const children = nodes[node] as Node
      if (bit === 0) children[side] = -1 - byte
      else {
        children[side] ??= nodes.push([undefined, undefined]) - 1
        node = children[side] as number
      }
    }
    code += 1
  }
  return nodes
}

function lengthOf(byte: number): number {
  return LENGTHS[byte] as number
}

function stepOf(nodes: readonly Node[], from: number, bits: number): number {
  let node = from
  let emitted = 0
  for (let bit = STEP_BITS - 1; bit >= 0; bit--) {
    const next = nodes[node]?.[(bits >> bit) & 1]
    if (next === undefined) return FAILS
    if (next < 0) emitted = EMITS | (-1 - next)
    node = Math.max(next, 0)
  }
  return (node << 16) | emitted
}
