/** The project's host, and the one die that all clients throw. */
export const HOST = 'soak.localhost'

/** A whole number below `bound`. */
export const below = bound => Math.floor(Math.random() * bound)
