/**
 * The prefix of all our Redis keys. Its number is the version of the formats behind it: whoever changes the
 * format of a counter, a slot or an entry raises it, and migrates what has no expiry of its own (run/acts).
 * Everything else under the old number is left to expire, while older gateways may still use it.
 */
export const KEY_SPACE = 'sluice:1:'
