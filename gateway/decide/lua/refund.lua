-- Takes back tokens that were charged a moment ago, as if they had never been asked for. Prepended: window.lua, meter.lua.
--
-- KEYS  one counter per ask
-- ARGV  1: now in microseconds, or '' for Redis's clock (a given clock is for tests)
--       2: when the tokens were charged, as `take` said
--       then per ask: kind (w or m), n and n values, as `take` has them
--
-- Atomic because another request must not spend between the look and the change.

local TEST_TTL_MS = 600000

local refunds = {}

-- Takes the first token that counts as spent at `at` or up to a part later. It may be another's, but the one that was
-- charged at `at` stands nowhere before it: so each token that stays is still counted no earlier than it was spent, which is
-- all that the sliding window promises. When the token may have left the window already, none is taken: it would be one of a
-- later request.
function refunds.s(spent, window, at, now)
  if at + window.length <= now then
    return
  end
  for j = 1, #spent, 2 do
    if spent[j] >= at and spent[j + 1] >= 1 then
      if spent[j] <= at + ceil(window.length / PARTS) then
        spent[j + 1] = spent[j + 1] - 1
        if spent[j + 1] == 0 then
          table.remove(spent, j)
          table.remove(spent, j)
        end
      end
      return
    end
  end
end

function refunds.f(spent, _, at)
  local last = #spent
  if last == 0 or spent[1] > at then
    return
  end
  spent[last] = spent[last] - 1
  if spent[last] <= 0 then
    for j = last, 1, -1 do
      spent[j] = nil
    end
  end
end

-- What has flowed in since may have been the refill of this very token: that part is not given a second time.
function refunds.t(spent, window, at, now)
  if #spent == 0 then
    return
  end
  local back = max(0, 1 - (now - at) * window.quota / window.length)
  if back == 0 then
    return
  end
  spent.whole = nil
  spent[2] = spent[2] - back
  if spent[2] < CRUMB then
    spent[1], spent[2] = nil, nil
  end
end

local given_clock = tonumber(ARGV[1])
local now = clock(given_clock)
local at = tonumber(ARGV[2])
local arg = 3

-- Only in the window that it was charged in: in the next one it would be a bonus.
local function refund_meter(key, meter)
  local state = read_meter(key, meter, now)
  if state.used == 0 or state.begin > at then
    return
  end
  -- Without it the quota was not passed: the refused request that was counted goes, too, and so does its block.
  state.used = max(0, min(state.used, meter.quota) - meter.cost)
  if meter.reserves then
    state.reserved = max(0, state.reserved - meter.cost)
  end
  state.ends = min(state.ends, state.begin + meter.length)
  if state.ends <= now then
    redis.call('DEL', key)
    return
  end
  write_meter(key, state, now, given_clock and TEST_TTL_MS)
end

for _, key in ipairs(KEYS) do
  local kind, n, first = ARGV[arg], tonumber(ARGV[arg + 1]), arg + 2
  arg = first + n
  if kind == 'm' then
    refund_meter(key, meter_of(first))
  else
    local windows = windows_of(first, n)
    local states = read(key, windows, now)
    for i, window in ipairs(windows) do
      refunds[window.letter](states[i].spent, window, at, now)
    end
    write(key, windows, states, now, given_clock and TEST_TTL_MS)
  end
end
