-- Takes an instance's report on the tokens it leased, charges the requests that wait, and lends more: generously while
-- the quota is far from used, none near its end. Prepended: window.lua.
--
-- KEYS  1: the counter
-- ARGV  1: now in microseconds, or '' for Redis's clock (a given clock is for tests)
--       2: the instance
--       3: how many requests wait
--       4: tokens wanted beyond those, 5: how long they may be kept, in microseconds
--       6: leased tokens given back, 7: leased tokens still in hand
--       8: n, then n values: age in microseconds, count, … of the leased tokens that were spent
--       then the windows, as window.lua has them
-- Returns one flat list: now; requests admitted; tokens lent; then per window: used, violated 0|1, reset in microseconds
--
-- Atomic because lent tokens must be counted as used before the next call.

local TEST_TTL_MS = 600000
-- The last tenth of a quota is never lent: there each request is charged by itself.
local LENDABLE = 0.9

local key = KEYS[1]
local given_clock = tonumber(ARGV[1])
local now = clock(given_clock)
local instance = ARGV[2]
local waiting, wanted, ttl = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local returned, held = tonumber(ARGV[6]), tonumber(ARGV[7])
local spent_values = tonumber(ARGV[8])
local first_window = 9 + spent_values
local windows = windows_of(first_window, #ARGV - first_window + 1, now)
local cost = windows.cost
local states = read(key, windows, now)

-- Takes out the instance's own lease, which is put back below with its new tokens.
local leases, leased = {}, nil
for j = 1, #states.leases, 3 do
  if states.leases[j] == instance then
    leased = states.leases[j + 1]
  else
    for k = j, j + 2 do
      leases[#leases + 1] = states.leases[k]
    end
  end
end
local instances = #leases / 3 + 1
states.leases = leases

local function lend(tokens)
  states.lent = states.lent + tokens
  for i = 1, #windows do
    states[i].used = states[i].used + tokens
  end
end

local function spend_at(at, count)
  for i, window in ipairs(windows) do
    local spent, added = window.algorithm.add_late(states[i].spent, window, at, count, now)
    states[i].spent = spent
    states[i].used = states[i].used + added
  end
end

-- Otherwise the lease has ended, and its tokens were counted as spent.
if leased then
  lend(-leased)
  local lost = leased - returned - held
  for j = 9, first_window - 1, 2 do
    local count = tonumber(ARGV[j + 1])
    spend_at(now - tonumber(ARGV[j]), count)
    lost = lost - count
  end
  if lost > 0 then
    spend_at(now, lost)
  end
end
lend(held)

local admitted = waiting
for i, window in ipairs(windows) do
  admitted = min(admitted, left(states[i], window, cost))
end
if admitted > 0 then
  for i, window in ipairs(windows) do
    spend(states[i], window, now, admitted * cost)
  end
end

local ahead = 0
if admitted == waiting then
  ahead = wanted
  for i, window in ipairs(windows) do
    local lendable = floor((window.quota * LENDABLE - states[i].used) / (2 * instances))
    ahead = max(0, min(ahead, lendable))
  end
  lend(ahead)
end
if held + ahead > 0 then
  leases[#leases + 1] = instance
  leases[#leases + 1] = held + ahead
  leases[#leases + 1] = now + ttl
end
-- A call that changes nothing writes nothing, as in `take`.
if leased or admitted + held + ahead > 0 or states.ahead then
  write(key, windows, states, now, given_clock and TEST_TTL_MS)
end

local refused = admitted < waiting
local result = { now, admitted, ahead }
for i, window in ipairs(windows) do
  result[#result + 1] = ceil(states[i].used - CRUMB)
  result[#result + 1] = refused and left(states[i], window, cost) == 0 and 1 or 0
  result[#result + 1] = reset_in(states, i, window, now, cost)
end
return result
