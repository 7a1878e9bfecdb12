/** The project's host, and random choices for all clients. */
export const HOST = 'soak.localhost'

/** A whole number below `bound`. */
export const below = bound => Math.floor(Math.random() * bound)

/** One of twenty client addresses: all of 127/8 is this machine. */
export const anyAddress = () => `127.0.0.${1 + below(20)}`
