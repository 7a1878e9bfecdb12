-- Takes one request back from a window, but only while that window stands: in the next one it would be a bonus.
--
-- KEYS  1: the counter
-- ARGV  1: milliseconds the request's own window can have to go at most
--       2: what it counted as
-- Returns 1 when it was taken back, 0 when that window has ended
--
-- Atomic because the window must not end between the look and the change.

local left = redis.call('PTTL', KEYS[1])
if left < 0 or left > tonumber(ARGV[1]) then
  return 0
end
redis.call('DECRBY', KEYS[1], ARGV[2])
return 1
