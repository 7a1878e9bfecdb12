/** Limits of a response from an upstream, whatever the version of HTTP. */

/** Bytes of a head, as HTTP/1.1 writes it. */
export const MAX_RESPONSE_HEAD = 16 * 1024
/** Most interim responses to one request; more can only be an attack. */
export const MAX_INTERIM = 64
