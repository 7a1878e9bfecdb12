const SECOND_MS = 1_000

let written = ''
let second = -1

/** The current value of the Date field (RFC 9110 section 6.6.1), formatted once a second. */
export function dateNow(): string {
  const now = Math.trunc(Date.now() / SECOND_MS)
  if (now !== second) {
    second = now
    written = new Date(now * SECOND_MS).toUTCString()
  }
  return written
}
