-- The state of a windows key: what was spent, what is lent out, and when it stops counting. A library, prepended to the
-- scripts that count. Prepended to it: algorithms.lua.
--
-- A key holds, in MessagePack, one list: when it was written, the leases (instance, tokens, end, …), then per window
-- its name, its length and a list of time, count, … A window is known by its name, so policies that list other windows,
-- or the same in another order, keep each other's counts. Ends are kept as distances from the time of writing; times
-- rise, and each is kept as the distance from the one before, the first as that from the time of writing.

-- Windows of other policies that a key keeps, at most. Lifetime windows come on top: what was spent in them is never
-- forgotten.
local MOST_OTHERS = 8

-- The windows in `n` arguments from `first`: name, quota, length in microseconds and algorithm of each; calendar windows
-- (c) have the boundaries of periods instead of a length. The cost of a request follows if it is more than one.
local function windows_of(first, n, now)
  local windows = { cost = n % 4 == 1 and tonumber(ARGV[first + n - 1]) or 1 }
  for j = first, first + n - 4, 4 do
    local letter = ARGV[j + 3]
    local window = {
      name = ARGV[j],
      quota = tonumber(ARGV[j + 1]),
      length = tonumber(ARGV[j + 2]),
      letter = letter,
      algorithm = algorithms[letter] or make_algorithm(letter),
    }
    if letter == 'c' then
      window.algorithm.choose_period(window, ARGV[j + 2], now)
    end
    windows.takes_credit = windows.takes_credit or letter == 'l'
    windows[#windows + 1] = window
  end
  return windows
end

local LONGEST_LEASE = 30000000

-- Half the shortest window at most, as in store/lease-client.ts.
local function longest_lease(windows)
  local shortest = windows[1].length
  for i = 2, #windows do
    shortest = min(shortest, windows[i].length)
  end
  return min(LONGEST_LEASE, shortest / 2)
end

-- Adds what the project was given to the quotas of lifetime windows. `key`: its credit by window.
local function add_credit(windows, key)
  for _, window in ipairs(windows) do
    if window.letter == 'l' then
      window.credit = tonumber(redis.call('HGET', key, window.name) or 0)
      window.quota = window.quota + window.credit
    end
  end
end

-- When the last token of a stored list was spent.
local function last_time(list, base)
  local at = base
  for j = 1, #list, 2 do
    at = at + list[j]
  end
  return at
end

-- Adds tokens to a stored list of another policy's window, no earlier than its last.
local function append(list, base, at, count)
  local last = last_time(list, base)
  list[#list + 1] = max(0, at - last)
  list[#list + 1] = count
end

-- Returns per window `spent` and `used`, lent tokens included; beside them `leases`, with their ends as times, and
-- `lent`. `others`: name, length and list of the windows that only other policies have, as long as they count, and
-- `base`, the time they are relative to. `ahead`: the state was written later than now, so the clock was set back, and
-- it must be written again to grow old. A lease that ended without a report counts as spent at its end; after the clock
-- was set back, it ends as if it had begun now.
local function read(key, windows, now)
  local leases, others = {}, {}
  local state = { leases = leases, others = others, lent = 0 }
  local packed = redis.call('GET', key)
  local stored = packed and cmsgpack.unpack(packed)
  -- A value in another form is another version's: ignored.
  if type(stored) ~= 'table' then
    for i = 1, #windows do
      state[i] = { spent = {}, used = 0 }
    end
    return state
  end
  local base, lent, places = stored[1], stored[2], {}
  state.base = base
  state.ahead = base > now
  for j = 3, #stored, 3 do
    places[stored[j]] = j
  end
  for i = 1, #windows do
    local window = windows[i]
    local j = places[window.name]
    places[window.name] = nil
    local spent, used = window.algorithm.read(j and stored[j + 2] or {}, base, window, now)
    state[i] = { spent = spent, used = used }
  end
  local ending = 0
  for j = 3, #stored, 3 do
    local length, list = stored[j + 1], stored[j + 2]
    local counts = length >= LIFETIME or (ending < MOST_OTHERS and last_time(list, base) + length > now)
    if places[stored[j]] and counts then
      others[#others + 1] = { stored[j], length, list }
      ending = ending + (length < LIFETIME and 1 or 0)
    end
  end
  local latest = state.ahead and now + longest_lease(windows) or math.huge
  for j = 1, #lent, 3 do
    local tokens, ends = lent[j + 1], min(base + lent[j + 2], latest)
    if ends > now then
      leases[#leases + 1] = lent[j]
      leases[#leases + 1] = tokens
      leases[#leases + 1] = ends
      state.lent = state.lent + tokens
    else
      for i, window in ipairs(windows) do
        if ends + window.length > now then
          local spent, added = window.algorithm.add_late(state[i].spent, window, ends, tokens, now)
          state[i] = { spent = spent, used = state[i].used + added }
        end
      end
      for _, other in ipairs(others) do
        -- Tokens of lifetime windows are never leased.
        if other[2] < LIFETIME then
          append(other[3], base, ends, tokens)
        end
      end
    end
  end
  if state.lent > 0 then
    for i = 1, #windows do
      state[i].used = state[i].used + state.lent
    end
  end
  return state
end

-- How many requests of that cost the window still has room for.
local function left(state, window, cost)
  local whole = floor(window.quota - state.used + CRUMB)
  return max(0, cost == 1 and whole or floor(whole / cost))
end

-- Spends tokens of one window's state now.
local function spend(state, window, now, count)
  state.spent = window.algorithm.add(state.spent, window, now, count)
  state.used = state.used + count
end

-- Microseconds until more quota comes back; if no request of that cost fits, until one does; 0 when nothing is spent.
-- Lent tokens are assumed to come back no earlier than if they had been spent.
local function reset_in(states, i, window, now, cost)
  local state = states[i]
  if window.ends then
    return state.used > 0 and ceil(window.ends - now) or 0
  end
  local excess = state.used + cost - window.quota
  local at = now
  if #state.spent > 0 and (states.lent == 0 or excess <= state.used - states.lent) then
    at = window.algorithm.returns(state.spent, window, excess)
  else
    for j = 3, #states.leases, 3 do
      at = max(at, states.leases[j] + window.length)
    end
  end
  return ceil(at - now)
end

-- Stores the state for as long as any of it counts, with a lifetime window for ever; or for `ttl` milliseconds if a test
-- says so.
local function write(key, windows, states, now, ttl)
  local ends, lent, leases = now, {}, states.leases
  local stored = { now, lent }
  local function store(name, length, list)
    local n = #stored
    stored[n + 1], stored[n + 2], stored[n + 3] = name, length, list
  end
  for i = 1, #windows do
    local list, before, spent = {}, now, states[i].spent
    local kept = spent.whole or spent
    for j = 1, #kept, 2 do
      list[j], list[j + 1] = kept[j] - before, kept[j + 1]
      before = kept[j]
    end
    if #kept > 0 then
      store(windows[i].name, windows[i].length, list)
    end
    if #spent > 0 then
      ends = max(ends, windows[i].algorithm.ends(spent, windows[i]))
    end
  end
  for j = 1, #leases, 3 do
    lent[j], lent[j + 1], lent[j + 2] = leases[j], leases[j + 1], leases[j + 2] - now
    for i = 1, #windows do
      ends = max(ends, leases[j + 2] + windows[i].length)
    end
  end
  for _, other in ipairs(states.others) do
    local name, length, list = other[1], other[2], other[3]
    ends = length >= LIFETIME and math.huge or max(ends, last_time(list, states.base) + length)
    list[1] = list[1] + states.base - now
    store(name, length, list)
  end
  local ms = ceil((ends - now) / 1000)
  if ms <= 0 then
    redis.call('DEL', key)
    return
  end
  if ms == math.huge and not ttl then
    redis.call('SET', key, cmsgpack.pack(stored))
    return
  end
  redis.call('SET', key, cmsgpack.pack(stored), 'PX', ttl or ms)
end

-- Redis's clock in microseconds, unless a test gives one.
local function clock(given)
  if given then
    return given
  end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
