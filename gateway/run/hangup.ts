/**
 * SIGHUP during the start. Without a handler it would end the process, so this is set up before the other modules are
 * loaded, and imports none.
 */

let isHeld = false
let received = false
let handle = (): unknown => {
  received = true
  return undefined
}

/** From now on SIGHUP does not end the process, but is remembered until there is a handler. */
export function holdHangups(): void {
  if (!isHeld) process.on('SIGHUP', () => handle())
  isHeld = true
}

/** Calls `handler` on each SIGHUP, and at once if there has been one that nobody handled. */
export function onHangup(handler: () => unknown): void {
  handle = handler
  if (received) handle()
  received = false
}
