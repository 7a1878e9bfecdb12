-- Reads every ask of one request, then charges each group whole or not at all.
-- The sliding window is that of store/sliding-window.ts, in microseconds of Redis's own clock.
--
-- KEYS  one counter per ask
-- ARGV  1: now in microseconds, or '' for Redis's clock (a given clock is for tests)
--       2: holder, the member that stands for this request in slot sets
--       then per ask: group, kind, n and n values
--         kind 'w' (windows): quota, length in microseconds, …
--         kind 's' (slots):   max, ttl in microseconds
-- Returns one flat list, per ask: granted 0|1, or -1 when a report-only counter could not be read; then per window or for the slots: used, violated 0|1, reset in microseconds
--
-- Atomic because a check and its charge must not be parted: parallel requests would pass together.

local PARTS = 50
local MOST_TIMES = 64
local TEST_TTL_MS = 600000
local ENFORCED = '0'

local now = tonumber(ARGV[1])
local given_clock = now ~= nil
if not given_clock then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local holder = ARGV[2]

-- State of a windows key: MessagePack of a base time, then per window a list of offset, count, offset, count, …
local function read_windows(key, windows)
  local base = now
  local lists = {}
  local packed = redis.call('GET', key)
  if packed then
    lists = { cmsgpack.unpack(packed) }
    base = table.remove(lists, 1)
  end
  local state = {}
  for i, window in ipairs(windows) do
    local spent, used = {}, 0
    local list = lists[i] or {}
    for j = 1, #list, 2 do
      local at = base + list[j]
      if at + window.length > now then
        spent[#spent + 1] = at
        spent[#spent + 1] = list[j + 1]
        used = used + list[j + 1]
      end
    end
    state[i] = { spent = spent, used = used }
  end
  return state
end

-- Joins the tokens of each part at the part's end.
local function round_up(spent, part)
  local rounded = {}
  for j = 1, #spent, 2 do
    local at = math.ceil(spent[j] / part) * part
    local last = #rounded - 1
    if last > 0 and rounded[last] == at then
      rounded[last + 1] = rounded[last + 1] + spent[j + 1]
    else
      rounded[last + 2] = at
      rounded[last + 3] = spent[j + 1]
    end
  end
  return rounded
end

local function spend(state, window)
  local spent = state.spent
  local last = #spent - 1
  if last > 0 and spent[last] >= now then
    spent[last + 1] = spent[last + 1] + 1
  else
    spent[last + 2] = now
    spent[last + 3] = 1
  end
  if #spent > 2 * MOST_TIMES then
    state.spent = round_up(spent, window.length / PARTS)
  end
  state.used = state.used + 1
end

local function reset_in(state, window)
  local excess = math.max(state.used + 1 - window.quota, 1)
  local spent = state.spent
  for j = 1, #spent, 2 do
    excess = excess - spent[j + 1]
    if excess <= 0 then
      return spent[j] + window.length - now
    end
  end
  return 0
end

local function write_windows(key, windows, states)
  local base = states[1].spent[1]
  for _, state in ipairs(states) do
    base = math.min(base, state.spent[1])
  end
  local lists, longest = {}, 0
  for i, state in ipairs(states) do
    local list = {}
    for j = 1, #state.spent, 2 do
      list[j] = state.spent[j] - base
      list[j + 1] = state.spent[j + 1]
    end
    lists[i] = list
    longest = math.max(longest, windows[i].length)
  end
  local ttl = math.ceil((longest + longest / PARTS) / 1000)
  if given_clock then
    ttl = TEST_TTL_MS
  end
  redis.call('SET', key, cmsgpack.pack(base, unpack(lists)), 'PX', ttl)
end

local function read(ask)
  if ask.kind == 'w' then
    ask.states = read_windows(ask.key, ask.windows)
    for j, window in ipairs(ask.windows) do
      ask.states[j].violated = ask.states[j].used >= window.quota
      ask.violated = ask.violated or ask.states[j].violated
    end
  else
    redis.call('ZREMRANGEBYSCORE', ask.key, '-inf', now)
    ask.held = redis.call('ZCARD', ask.key)
    ask.violated = ask.held >= ask.max
  end
end

local asks, refused = {}, {}
local arg = 3
for i, key in ipairs(KEYS) do
  local ask = { key = key, group = ARGV[arg], kind = ARGV[arg + 1] }
  local n = tonumber(ARGV[arg + 2])
  local first = arg + 3
  arg = first + n
  if ask.kind == 'w' then
    ask.windows = {}
    for j = first, arg - 1, 2 do
      ask.windows[#ask.windows + 1] = { quota = tonumber(ARGV[j]), length = tonumber(ARGV[j + 1]) }
    end
  else
    ask.max, ask.ttl = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
  end
  if ask.group == ENFORCED then
    read(ask)
  else
    -- A report-only counter that cannot be read must not fail the enforced ones.
    ask.broken = not pcall(read, ask)
  end
  if ask.violated or ask.broken then
    refused[ask.group] = true
  end
  asks[i] = ask
end

local result = {}
local function say(value)
  result[#result + 1] = value
end
for _, ask in ipairs(asks) do
  local granted = not refused[ask.group]
  if ask.broken then
    say(-1)
    for _ = 1, 3 * (ask.windows and #ask.windows or 1) do
      say(0)
    end
  elseif ask.kind == 'w' then
    say(granted and 1 or 0)
    for j, window in ipairs(ask.windows) do
      local state = ask.states[j]
      if granted then
        spend(state, window)
      end
      say(state.used)
      say(state.violated and 1 or 0)
      say(reset_in(state, window))
    end
    if granted then
      write_windows(ask.key, ask.windows, ask.states)
    end
  else
    say(granted and 1 or 0)
    if granted then
      redis.call('ZADD', ask.key, now + ask.ttl, holder)
      local ttl = given_clock and TEST_TTL_MS or math.ceil(ask.ttl / 1000)
      -- The set lives as long as its longest slot, which may be of another length since the rule was edited.
      if redis.call('PTTL', ask.key) < ttl then
        redis.call('PEXPIRE', ask.key, ttl)
      end
      ask.held = ask.held + 1
    end
    say(ask.held)
    say(ask.violated and 1 or 0)
    say(0)
  end
end
return result
