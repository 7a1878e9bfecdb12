/**
 * What every Redis key of ours begins with. The number is that of the formats behind it: whoever changes what a counter, a
 * slot or an entry looks like in Redis raises it, and carries over what has no end of its own (run/acts). All else of the
 * former number is then left alone and ends by its time to live, while older gateways may go on using it.
 */
export const KEY_SPACE = 'sluice:1:'
