-- The state of a meter, as in store/meters.ts but in microseconds: a window that begins with the first request and ends
-- as a whole, and may block its key for longer. A library, prepended to the scripts that count.
--
-- A key holds, in MessagePack: begin, end, used, how many of the used are reserved, and until when they wait to be
-- confirmed: then they come back. Reserved tokens count as used, but a request refused because of them begins no block:
-- they may still be given back.

local RESERVED_US = 10000000

local function meter_of(first)
  return {
    quota = tonumber(ARGV[first]),
    length = tonumber(ARGV[first + 1]),
    block = tonumber(ARGV[first + 2]),
    cost = tonumber(ARGV[first + 3]),
    reserves = ARGV[first + 4] == '1',
    -- Charged once the upstream has responded: until then the request only needs room.
    later = ARGV[first + 4] == '2',
  }
end

-- `ended_by_it`: whether the meter's length may end the window; not for what is left of an earlier request, whose limit
-- may have been edited since.
local function read_meter(key, meter, now, ended_by_it)
  local packed = redis.call('GET', key)
  -- A plain number is a counter of another version: ignored.
  local begin, ends, used, reserved, waits = 0, 0, 0, 0, 0
  if packed and not tonumber(packed) then
    begin, ends, used, reserved, waits = cmsgpack.unpack(packed)
  end
  if ends <= now then
    return { begin = now, ends = now + meter.length, used = 0, reserved = 0, waits = 0 }
  end
  -- A gateway that died after reserving has admitted nobody. If the quota was passed, other requests have used it up.
  if waits <= now then
    if used <= meter.quota then
      used = max(0, used - reserved)
    end
    reserved = 0
  end
  if not ended_by_it then
    return { begin = begin, ends = ends, used = used, reserved = reserved, waits = waits }
  end
  -- An edited limit applies at once. After the clock was set back, a window lasts no longer than its length.
  local latest = now + max(meter.length, meter.block)
  if used <= meter.quota then
    latest = min(now, begin) + meter.length
    if latest <= now then
      return { begin = now, ends = now + meter.length, used = 0, reserved = 0, waits = 0 }
    end
  end
  local moved = ends > latest
  return { begin = begin, ends = min(ends, latest), moved = moved, used = used, reserved = reserved, waits = waits }
end

local function write_meter(key, state, now, ttl)
  local packed = cmsgpack.pack(state.begin, state.ends, state.used, state.reserved, state.waits)
  redis.call('SET', key, packed, 'PX', ttl or max(1, ceil((state.ends - now) / 1000)))
end

-- How many requests still have room.
local function meter_room(state, meter)
  local room = max(0, floor((meter.quota - state.used) / meter.cost))
  return meter.later and room > 0 and math.huge or room
end

-- Charges `count` of the `asked` requests. If some had no room, the first of them counts as well and begins the block,
-- unless it was refused because of tokens that may still be given back. Returns true if the meter refuses.
local function charge_meter(state, meter, now, count, asked)
  if not meter.later then
    state.used = state.used + count * meter.cost
  end
  if meter.reserves and count > 0 then
    state.reserved = state.reserved + count * meter.cost
    state.waits = now + RESERVED_US
  end
  if count == asked or state.used + meter.cost <= meter.quota then
    return false
  end
  if state.used <= meter.quota and state.used - state.reserved + meter.cost > meter.quota then
    state.used = state.used + meter.cost
    state.ends = max(state.ends, now + meter.block)
  end
  return true
end
