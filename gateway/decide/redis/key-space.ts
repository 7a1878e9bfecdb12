/**
 * The prefix of all our Redis keys. Its number is the version of the stored formats: a change to the format of a
 * counter, a slot or an entry must raise it, and migrate the keys without an expiry (overrides/, lifetime windows and
 * credit). All other keys with the old number are left to expire, as older gateways may still use them.
 */
export const KEY_SPACE = 'sluice:1:'
