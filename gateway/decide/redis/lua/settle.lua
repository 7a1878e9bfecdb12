-- Charges what an instance admitted while it had to count on its own, whether there is room or not. Prepended:
-- window.lua, meter.lua.
--
-- KEYS  one counter per ask
-- ARGV  1: now in microseconds, or '' for Redis's clock (a given clock is for tests)
--       then per ask: m, then m values: age in microseconds, tokens, …, oldest first; kind (w or m), n and n values, as
--       for `take`
--
-- Returns now.
--
-- Atomic because another request must not spend between the read and the write.

local TEST_TTL_MS = 600000

local given_clock = tonumber(ARGV[1])
local test_ttl = given_clock and TEST_TTL_MS
local now = clock(given_clock)

local function settle_windows(key, windows, spent)
  local states = read(key, windows, now)
  for i, window in ipairs(windows) do
    for j = 1, #spent, 2 do
      if spent[j] < window.length then
        states[i].spent = window.algorithm.add_late(states[i].spent, window, now - spent[j], spent[j + 1], now)
      end
    end
  end
  write(key, windows, states, now, test_ttl)
end

-- The window may have begun with what was admitted there. Charges no more than the quota, so only the next request
-- begins a block.
local function settle_meter(key, meter, spent)
  local state = read_meter(key, meter, now, false)
  local is_new = state.used == 0
  for j = 1, #spent, 2 do
    if spent[j] < meter.length then
      if is_new then
        state.begin = now - spent[j]
        state.ends = state.begin + meter.length
        is_new = false
      end
      state.used = max(state.used, min(meter.quota, state.used + spent[j + 1]))
    end
  end
  if state.used > 0 then
    write_meter(key, state, now, test_ttl)
  end
end

local arg = 2
for _, key in ipairs(KEYS) do
  local spent, m = {}, tonumber(ARGV[arg])
  for j = 1, m do
    spent[j] = tonumber(ARGV[arg + j])
  end
  arg = arg + m + 1
  local kind, n, first = ARGV[arg], tonumber(ARGV[arg + 1]), arg + 2
  arg = first + n
  -- A counter that cannot be read must not keep the others from being settled.
  if kind == 'm' then
    pcall(settle_meter, key, meter_of(first), spent)
  else
    pcall(settle_windows, key, windows_of(first, n, now), spent)
  end
end
return now
