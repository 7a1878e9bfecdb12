-- Renews one slot, but only while it is still held: an expired slot may belong to another request by now.
--
-- KEYS  1: the slot set
-- ARGV  1: the slot's member, 2: ttl in microseconds
-- Returns 1 when renewed, 0 when the slot was gone
--
-- Atomic because a slot must not expire between the check and the renewal.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) <= now then
  return 0
end
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[1])
-- The set lives as long as its longest slot, whose ttl may differ if the rule was edited.
local ttl = math.ceil(ARGV[2] / 1000)
if redis.call('PTTL', KEYS[1]) < ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return 1
