/**
 * Limits of what costs a peer nothing and the gateway something. Each has a name, by which the metrics count the clients'
 * connections that it has ended.
 */
import type { Flood } from '../message.js'
import { floodError } from './errors.js'

export const WINDOW_MS = 10_000
/** Resets, streams too many, pings and settings of one connection in a window. */
export const MAX_COSTLY = 200
/** Frames that change nothing, of one connection in a window, beyond those that frames of ours may have caused. */
export const MAX_IDLE_FRAMES = 2_000
/** A peer may reply to each of our frames with two WINDOW_UPDATE frames. */
const IDLE_FRAMES_PER_FRAME_SENT = 2
/**
 * Most pings that frames sent before allow at once. Clients of gRPC send one for each DATA frame that they get, to learn how
 * much data the network holds.
 */
const MAX_PINGS_ALLOWED = 200
/** A smaller DATA frame allows none: a peer could make any number of them with windows of a byte. */
export const SMALL_PAYLOAD = 256

/** What one connection may still send in this window. */
export class FloodLimits {
  readonly #mostIdle: number
  #windowEnds = performance.now() + WINDOW_MS
  #costly = 0
  #idle = 0
  /** Pings that are still allowed by frames sent. */
  #pings = 0

  constructor(mostIdle = MAX_IDLE_FRAMES) {
    this.#mostIdle = mostIdle
  }

  /** A ping, which is replied to. @throws {ConnectionError} */
  countPing(): void {
    if (this.#pings > 0) this.#pings -= 1
    else this.countCostly('pings')
  }

  /** Something that costs the gateway much more than the peer. @throws {ConnectionError} */
  countCostly(flood: Flood): void {
    this.#look()
    this.#costly += 1
    if (this.#costly > MAX_COSTLY) throw floodError(flood)
  }

  /** A frame that changes nothing. @throws {ConnectionError} */
  countIdle(): void {
    this.#idle += 1
    if (this.#idle <= this.#mostIdle) return
    this.#look()
    if (this.#idle > 0) throw floodError('idle-frames')
  }

  /** A frame was sent that the peer may reply to. */
  onSent(): void {
    this.#idle = Math.max(0, this.#idle - IDLE_FRAMES_PER_FRAME_SENT)
    if (this.#pings < MAX_PINGS_ALLOWED) this.#pings += 1
  }

  #look(): void {
    const now = performance.now()
    if (now < this.#windowEnds) return
    this.#windowEnds = now + WINDOW_MS
    this.#costly = 0
    this.#idle = 0
  }
}
