/** A header block that does not follow RFC 7541: both ends' tables differ from here on, so the connection must end. */
export class CompressionError extends Error {}

/** A block that would take far more work to decode than to send. */
export class CompressionBomb extends CompressionError {}
