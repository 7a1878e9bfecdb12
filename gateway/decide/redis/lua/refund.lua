-- Takes back tokens that were charged a moment ago, as if they had never been asked for. Prepended: window.lua,
-- meter.lua.
--
-- KEYS  one counter per ask, then for each the time of its last reset
-- ARGV  1: now in microseconds, or '' for Redis's clock (a given clock is for tests)
--       2: when the tokens were charged, as `take` returned it
--       then per ask: kind (w or m), n and n values, as for `take`
--
-- Atomic because another request must not spend between the read and the write.

local TEST_TTL_MS = 600000

local refunds = {}

-- Takes the first tokens that count as spent at `at` or up to a part later. They may be another request's, but tokens
-- charged at `at` are never before them, so each token that stays is still counted no earlier than it was spent, which
-- is all that the sliding window promises. If the tokens may have left the window already, none is taken: it would be
-- one of a later request.
function refunds.s(spent, window, at, now, cost)
  if at + window.length <= now then
    return
  end
  local j, latest = 1, at + ceil(window.length / PARTS)
  while cost > 0 and spent[j] and spent[j] <= latest do
    local taken = spent[j] < at and 0 or min(cost, floor(spent[j + 1]))
    cost = cost - taken
    spent[j + 1] = spent[j + 1] - taken
    if spent[j + 1] == 0 then
      table.remove(spent, j)
      table.remove(spent, j)
    else
      j = j + 2
    end
  end
end

function refunds.f(spent, _, at, _, cost)
  local last = #spent
  if last == 0 or spent[1] > at then
    return
  end
  spent[last] = spent[last] - cost
  if spent[last] <= 0 then
    for j = last, 1, -1 do
      spent[j] = nil
    end
  end
end

refunds.l = refunds.f

function refunds.c(spent, window, at, _, cost)
  if at >= window.begins then
    refunds.f(spent, window, max(at, spent[1] or at), nil, cost)
  end
end

-- What was refilled since may have been these very tokens: that part is not given back again.
function refunds.t(spent, window, at, now, cost)
  if #spent == 0 then
    return
  end
  local back = max(0, cost - (now - at) * window.quota / window.length)
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

-- Only in the window that was charged: in the next one the refund would be a bonus.
local function refund_meter(key, meter)
  local state = read_meter(key, meter, now, false)
  if state.used == 0 or state.begin > at then
    return
  end
  -- Without these tokens the quota was not passed, so the refusal that was counted is undone, too, with its block.
  if state.used > meter.quota then
    state.ends = min(state.ends, state.begin + meter.length)
  end
  state.used = max(0, min(state.used, meter.quota) - meter.cost)
  if meter.reserves then
    state.reserved = max(0, state.reserved - meter.cost)
  end
  if state.ends <= now then
    redis.call('DEL', key)
    return
  end
  write_meter(key, state, now, given_clock and TEST_TTL_MS)
end

for i = 1, #KEYS / 2 do
  local key, reset_at = KEYS[i], tonumber(redis.call('GET', KEYS[i + #KEYS / 2]) or 0)
  local kind, n, first = ARGV[arg], tonumber(ARGV[arg + 1]), arg + 2
  arg = first + n
  if at < reset_at then
    -- What was charged is forgotten.
  elseif kind == 'm' then
    refund_meter(key, meter_of(first))
  else
    local windows = windows_of(first, n, now)
    local states = read(key, windows, now)
    for i, window in ipairs(windows) do
      refunds[window.letter](states[i].spent, window, at, now, windows.cost)
    end
    write(key, windows, states, now, given_clock and TEST_TTL_MS)
  end
end
