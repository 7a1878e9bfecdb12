-- Adds credit to a lifetime window, once for each id.
--
-- KEYS  1: the credit of a bucket, by window; 2: the list of the project's credits; 3: the id, if there is one
-- ARGV  1: the window, 2: the amount, which may be negative, 3: the most that its credit may become
--       4: the entry as JSON, 5: how many the list holds, 6: how long an id is remembered, in milliseconds
-- Returns what happened, and an entry: the credit after it, a space and its JSON
--         added, repeated (with the entry that the id has added) or beyond (with the credit as it is)
--
-- Atomic because a call that is sent twice at once must not be added twice.

local known = KEYS[3] and redis.call('GET', KEYS[3])
if known then
  return { 'repeated', known }
end
local before = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local credit = before + tonumber(ARGV[2])
if credit < 0 or credit > tonumber(ARGV[3]) then
  return { 'beyond', string.format('%.0f', before) }
end
local text = string.format('%.0f', credit)
local entry = text .. ' ' .. ARGV[4]
redis.call('HSET', KEYS[1], ARGV[1], text)
redis.call('LPUSH', KEYS[2], entry)
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[5]) - 1)
if KEYS[3] then
  redis.call('SET', KEYS[3], entry, 'PX', ARGV[6])
end
return { 'added', entry }
