-- Confirms reservations on meters: every other ask of the request was granted. Prepended: window.lua, meter.lua.
--
-- KEYS  one meter per ask
-- ARGV  1: now in microseconds, or '' for Redis's clock (a given clock is for tests)
--       then per ask: quota, length and block in microseconds, cost, charged 1 (reserved)
--
-- Atomic because two confirmations must not both read the same reservation.

local now = clock(tonumber(ARGV[1]))
for i, key in ipairs(KEYS) do
  local meter = meter_of(2 + 5 * (i - 1))
  local state = read_meter(key, meter, now, false)
  if state.used > 0 then
    state.reserved = max(0, state.reserved - meter.cost)
    write_meter(key, state, now)
  end
end
