-- Prepended to a script that counts, makes it report what it would do without doing it: commands that write are not
-- sent. A library, like window.lua.

local READS = { GET = true, HGET = true, PTTL = true, TIME = true, ZRANGEBYSCORE = true, ZSCORE = true }
local send = redis.call
-- Slots of the set in question that expired by this time are not removed, but not counted either.
local ended

local redis = {}

function redis.call(command, ...)
  if READS[command] then
    return send(command, ...)
  end
  if command == 'ZREMRANGEBYSCORE' then
    ended = select(3, ...)
  elseif command == 'ZCARD' then
    local key = ...
    return send('ZCOUNT', key, string.format('(%.0f', ended), '+inf')
  end
end
