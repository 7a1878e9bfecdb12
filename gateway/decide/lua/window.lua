-- The state of a windows key: what was spent, what is lent out, and when it stops counting. A library, prepended to the
-- scripts that count. Prepended to it: algorithms.lua.
--
-- A key holds, in MessagePack: when it was written, the leases (instance, tokens, end, …), then per window time,
-- count, … Ends are kept as distances from the time of writing; times rise, and each is kept as the distance from the
-- one before, the first as that from the time of writing.

-- The windows in `n` arguments from `first`: quota, length in microseconds and algorithm of each; calendar windows (c)
-- have the boundaries of periods instead of a length. The cost of a request follows if it is more than one.
local function windows_of(first, n, now)
  local windows = { cost = n % 3 == 1 and tonumber(ARGV[first + n - 1]) or 1 }
  for j = first, first + n - 3, 3 do
    local letter = ARGV[j + 2]
    local window = {
      quota = tonumber(ARGV[j]),
      length = tonumber(ARGV[j + 1]),
      letter = letter,
      algorithm = algorithms[letter] or make_algorithm(letter),
    }
    if letter == 'c' then
      window.algorithm.choose_period(window, ARGV[j + 1], now)
    end
    windows[#windows + 1] = window
  end
  return windows
end

local LONGEST_LEASE = 30000000

-- Half the shortest window at most, as in store/lender.ts.
local function longest_lease(windows)
  local shortest = windows[1].length
  for i = 2, #windows do
    shortest = min(shortest, windows[i].length)
  end
  return min(LONGEST_LEASE, shortest / 2)
end

-- Returns per window `spent` and `used`, lent tokens included; beside them `leases`, with their ends as times, and
-- `lent`. `more`: the lists of further windows, which another gateway's policy has, with their time of writing. `ahead`:
-- the state was written later than now, so the clock was set back, and it must be written again to grow old. A lease
-- that ended without a report counts as spent at its end; after the clock was set back, it ends as if it had begun now.
local function read(key, windows, now)
  local leases = {}
  local state = { leases = leases, lent = 0 }
  local packed = redis.call('GET', key)
  if not packed then
    for i = 1, #windows do
      state[i] = { spent = {}, used = 0 }
    end
    return state
  end
  local lists = { cmsgpack.unpack(packed) }
  local base, lent = lists[1], lists[2]
  state.ahead = base > now
  if #lists > #windows + 2 then
    state.more = { base = base, unpack(lists, #windows + 3) }
  end
  for i = 1, #windows do
    local window = windows[i]
    local spent, used = window.algorithm.read(lists[i + 2] or {}, base, window, now)
    state[i] = { spent = spent, used = used }
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

-- Stores the state for as long as any of it counts, or for `ttl` milliseconds if a test says so.
local function write(key, windows, states, now, ttl)
  local ends, lists = now, {}
  for i = 1, #windows do
    local list, before, spent = {}, now, states[i].spent
    local kept = spent.whole or spent
    for j = 1, #kept, 2 do
      list[j], list[j + 1] = kept[j] - before, kept[j + 1]
      before = kept[j]
    end
    lists[i] = list
    if #spent > 0 then
      ends = max(ends, windows[i].algorithm.ends(spent, windows[i]))
    end
  end
  local lent, leases = {}, states.leases
  for j = 1, #leases, 3 do
    lent[j], lent[j + 1], lent[j + 2] = leases[j], leases[j + 1], leases[j + 2] - now
    for i = 1, #windows do
      ends = max(ends, leases[j + 2] + windows[i].length)
    end
  end
  local ms = ceil((ends - now) / 1000)
  if states.more then
    for i, list in ipairs(states.more) do
      list[1] = list[1] and list[1] + states.more.base - now
      lists[#windows + i] = list
    end
    -- How long they count is unknown here.
    ms = max(ms, redis.call('PTTL', key))
  end
  if ms <= 0 then
    redis.call('DEL', key)
    return
  end
  redis.call('SET', key, cmsgpack.pack(now, lent, unpack(lists)), 'PX', ttl or ms)
end

-- Redis's clock in microseconds, unless a test gives one.
local function clock(given)
  if given then
    return given
  end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
