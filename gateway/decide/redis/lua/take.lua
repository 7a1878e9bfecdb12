-- Reads every ask of some equal requests, then charges each group of asks for as many of the requests as all asks of
-- the group have room for. Prepended: window.lua, meter.lua.
--
-- KEYS  one counter per ask; after one with lifetime windows, the project's credit for them
-- ARGV  1: now in microseconds, or '' for Redis's clock (a given clock is for tests)
--       2: number of requests; 1 if there are slots among the asks
--       3: holder; with '@' and the slot's ttl, it is the request's member in slot sets
--       then per ask: group, kind, n and n values
--         kind 'w' (windows): as window.lua has them
--         kind 'm' (meter):   quota, length and block in microseconds, cost, charged 0 at once|1 reserved|2 later
--         kind 's' (slots):   max, ttl in microseconds
-- Returns one flat list: now in microseconds; then per ask: how many requests were admitted, or -1 when a report-only
--         counter could not be read; then per window, for the meter or for the slots: used, violated 0|1 (for those
--         not admitted), reset in microseconds or, for a lifetime window, its credit
--
-- Atomic because parallel requests could otherwise all pass the check before any is charged.

local TEST_TTL_MS = 600000
local ENFORCED = '0'

local given_clock = tonumber(ARGV[1])
local test_ttl = given_clock and TEST_TTL_MS
local now = clock(given_clock)
local times = tonumber(ARGV[2])
local holder = ARGV[3]

-- A slot that expires later than one taken now was taken before the clock was set back: it expires as if taken now.
local function shorten(ask)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', ask.key, now + ask.ttl + 1, '+inf')) do
    local latest = now + (tonumber(member:match('@(%d+)$')) or ask.ttl)
    if tonumber(redis.call('ZSCORE', ask.key, member)) > latest then
      redis.call('ZADD', ask.key, latest, member)
    end
  end
end

-- How many requests the ask has room for by itself.
local function room(ask)
  if ask.windows then
    if ask.credit then
      add_credit(ask.windows, ask.credit)
    end
    ask.states = read(ask.key, ask.windows, now)
    local most = times
    for j = 1, #ask.windows do
      most = min(most, left(ask.states[j], ask.windows[j], ask.windows.cost))
    end
    return most
  end
  if ask.meter then
    ask.state = read_meter(ask.key, ask.meter, now, true)
    return min(times, meter_room(ask.state, ask.meter))
  end
  redis.call('ZREMRANGEBYSCORE', ask.key, '-inf', now)
  ask.held = redis.call('ZCARD', ask.key)
  if ask.held < ask.max then
    return 1
  end
  shorten(ask)
  return 0
end

local asks, admitted = {}, {}
local arg, next_key = 4, 1
while KEYS[next_key] do
  local ask = { key = KEYS[next_key], group = ARGV[arg] }
  next_key = next_key + 1
  local kind, n, first = ARGV[arg + 1], tonumber(ARGV[arg + 2]), arg + 3
  arg = first + n
  if kind == 'w' then
    ask.windows = windows_of(first, n, now)
    if ask.windows.takes_credit then
      ask.credit = KEYS[next_key]
      next_key = next_key + 1
    end
  elseif kind == 'm' then
    ask.meter = meter_of(first)
  else
    ask.max, ask.ttl = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
    ask.member = holder .. '@' .. ARGV[first + 1]
  end
  local most
  if ask.group == ENFORCED then
    most = room(ask)
  else
    -- A report-only counter that cannot be read must not fail the enforced ones.
    local read_it
    read_it, most = pcall(room, ask)
    if not read_it then
      ask.broken, most = true, 0
    end
  end
  admitted[ask.group] = min(admitted[ask.group] or times, most)
  asks[#asks + 1] = ask
end

local result, said = { now }, 1
local function say(used, violated, reset)
  result[said + 1], result[said + 2], result[said + 3] = used, violated and 1 or 0, reset
  said = said + 3
end
for _, ask in ipairs(asks) do
  local count = admitted[ask.group]
  said = said + 1
  result[said] = ask.broken and -1 or count
  if ask.broken then
    for _ = 1, ask.windows and #ask.windows or 1 do
      say(0, false, 0)
    end
  elseif ask.windows then
    local cost = ask.windows.cost
    for j = 1, #ask.windows do
      local window, state = ask.windows[j], ask.states[j]
      if count > 0 then
        spend(state, window, now, count * cost)
      end
      local reset = window.credit or reset_in(ask.states, j, window, now, cost)
      say(ceil(state.used - CRUMB), left(state, window, cost) == 0, reset)
    end
    if count > 0 or ask.states.ahead then
      write(ask.key, ask.windows, ask.states, now, test_ttl)
    end
  elseif ask.meter then
    local state, used = ask.state, ask.state.used
    local refuses = charge_meter(state, ask.meter, now, count, times)
    if state.used ~= used or state.moved then
      write_meter(ask.key, state, now, test_ttl)
    end
    say(state.used, refuses, ceil(state.ends - now))
  else
    local full = ask.held >= ask.max
    if count > 0 then
      redis.call('ZADD', ask.key, now + ask.ttl, ask.member)
      local ttl = test_ttl or ceil(ask.ttl / 1000)
      -- The set lives as long as its longest slot, whose ttl may differ if the rule was edited.
      if redis.call('PTTL', ask.key) < ttl then
        redis.call('PEXPIRE', ask.key, ttl)
      end
      ask.held = ask.held + 1
    end
    say(ask.held, full, 0)
  end
end
return result
