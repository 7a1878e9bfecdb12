-- The algorithms that count a window, as in windows/*-window.ts and windows/token-bucket.ts but in microseconds. A
-- library, prepended to window.lua. Each has these functions over lists of time, count, time, count, …:
--   read      makes a stored list, whose times are distances, one as of now; returns it and its tokens
--   add       adds tokens spent now; add_late: tokens spent a while ago, and returns how many of them still count
--   returns   when `excess` tokens have come back; ends: when all have
-- Every algorithm reads the lists of the others, so changing a window's algorithm forgets nothing.

local PARTS = 50
local MOST_TIMES = 64
-- Rounding error of a token.
local CRUMB = 1e-6

local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

-- Merges the tokens of each part into one entry at the part's end.
local function round_up(spent, window)
  local part = ceil(window.length / PARTS)
  local rounded = {}
  local last = -1
  for j = 1, #spent, 2 do
    local at = ceil(spent[j] / part) * part
    if last > 0 and rounded[last] == at then
      rounded[last + 1] = rounded[last + 1] + spent[j + 1]
    else
      last = last + 2
      rounded[last] = at
      rounded[last + 1] = spent[j + 1]
    end
  end
  return rounded
end

-- No interval of the window's length admits more than the quota.
local sliding_window = {}

function sliding_window.read(list, base, window, now)
  local spent, used, last = {}, 0, 0
  local at, oldest, latest = base, now - window.length, now + window.length / PARTS + 1
  for j = 1, #list, 2 do
    at = at + list[j]
    local count = list[j + 1]
    if at > oldest and count > 0 then
      last = last + 2
      -- A time more than one part ahead means that the clock was set back: that must not lock anybody out.
      spent[last - 1] = at < latest and at or latest
      spent[last] = count
      used = used + count
    end
  end
  return spent, used
end

function sliding_window.add(spent, window, at, count)
  local last = #spent - 1
  -- A later time is the safe side, so tokens may always join the last entry.
  if last > 0 and spent[last] >= at then
    spent[last + 1] = spent[last + 1] + count
    return spent
  end
  spent[last + 2] = at
  spent[last + 3] = count
  return last + 3 > 2 * MOST_TIMES and round_up(spent, window) or spent
end

-- Inserts tokens spent a while ago in the order of time; also returns how many of them still count.
function sliding_window.add_late(spent, window, at, count)
  local j = #spent - 1
  while j > 0 and spent[j] > at do
    j = j - 2
  end
  if j > 0 and spent[j] == at then
    spent[j + 1] = spent[j + 1] + count
  else
    table.insert(spent, j + 2, at)
    table.insert(spent, j + 3, count)
  end
  return #spent > 2 * MOST_TIMES and round_up(spent, window) or spent, count
end

function sliding_window.returns(spent, window, excess)
  excess = max(excess, 1)
  for j = 1, #spent, 2 do
    excess = excess - spent[j + 1]
    if excess <= 0 then
      return spent[j] + window.length
    end
  end
  return spent[#spent - 1] + window.length
end

function sliding_window.ends(spent, window)
  return spent[#spent - 1] + window.length
end

-- The tokens of a list, which may be another algorithm's, and the time of the last.
local function total(list, base, now)
  local at, sum = base, 0
  for j = 1, #list, 2 do
    at = at + list[j]
    sum = sum + list[j + 1]
  end
  return sum, min(at, now)
end

-- Begins with the first request and ends as a whole. The list: the start (with no tokens), then the last time with all
-- of them. This algorithm and those below are made on demand: few calls need them, and making them takes a tenth of a
-- call.
local function make_fixed_window()
  local fixed_window = {}

  function fixed_window.read(list, base, window, now)
    local sum, last = total(list, base, now)
    -- Tokens at the first time and more after it: a list of another algorithm.
    local begin = (#list > 2 and list[2] > 0) and last or min(base + (list[1] or 0), last)
    if sum == 0 or begin + window.length <= now then
      return {}, 0
    end
    return begin < last and { begin, 0, last, sum } or { last, sum }, sum
  end

  function fixed_window.add(spent, _, at, count)
    if #spent == 0 then
      return { at, count }
    end
    local begin, last = spent[1], max(at, spent[#spent - 1])
    count = count + spent[#spent]
    return begin < last and { begin, 0, last, count } or { last, count }
  end

  function fixed_window.add_late(spent, window, at, count)
    return fixed_window.add(spent, window, at, count), count
  end

  function fixed_window.ends(spent, window)
    return spent[1] + window.length
  end

  fixed_window.returns = fixed_window.ends
  return fixed_window
end

-- Holds the quota when full and refills evenly. The list: when it was last updated, and the tokens missing then. If
-- more are missing than the bucket holds, `whole` is the list to store until tokens are charged or given back.
local function make_token_bucket()
  local token_bucket = {}

  function token_bucket.read(list, base, window, now)
    local sum, last = total(list, base, now)
    -- No more tokens can be missing than the bucket holds, even after the quota was lowered.
    local level = min(sum, window.quota) - (now - last) * window.quota / window.length
    if level < CRUMB then
      return {}, 0
    end
    local spent = { now, level }
    -- Another gateway may still have a larger quota: a call that spends nothing keeps what was spent there.
    if sum > window.quota then
      spent.whole = { last, sum }
    end
    return spent, level
  end

  function token_bucket.add(spent, _, at, count)
    return { spent[1] or at, (spent[2] or 0) + count }
  end

  function token_bucket.add_late(spent, window, at, count, now)
    local per_us = window.quota / window.length
    local level = max(0, count - (now - at) * per_us)
    local joined, whole = token_bucket.add(spent, window, now, level), spent.whole
    -- Late tokens were granted before and are not asked for again here, so what exceeds the bucket is kept.
    if whole then
      joined.whole = { now, whole[2] - (now - whole[1]) * per_us + level }
    end
    return joined, level
  end

  -- When `excess` tokens are back; at the earliest, when the next whole token is.
  function token_bucket.returns(spent, window, excess)
    local level = spent[2]
    local back = max(excess, level - ceil(level - CRUMB) + 1)
    return spent[1] + back * window.length / window.quota
  end

  function token_bucket.ends(spent, window)
    return token_bucket.returns(spent, window, spent[2])
  end

  return token_bucket
end

-- Spent tokens count until their day, week or month ends: `window.begins` to `window.ends`. The list: when the last
-- token was spent, and how many were spent in this period.
local function make_calendar()
  local calendar = {}

  -- Sets the period of a calendar window to the one that contains `now`. `boundaries`: the starts of three periods
  -- around the clock of the calling gateway, and the end of the last. If `now` is outside, a clock is off by days:
  -- periods there are as long as the nearest of the three.
  function calendar.choose_period(window, boundaries, now)
    local begins, ends, length
    for boundary in string.gmatch(boundaries, '%d+') do
      begins, ends = ends, tonumber(boundary)
      length = begins and max(1, ends - begins)
      if begins and ends > now then
        break
      end
    end
    local off = floor((now - begins) / length) * length
    window.begins, window.ends, window.length = begins + off, begins + off + length, length
  end

  function calendar.read(list, base, window, now)
    local at, sum, last = base, 0, 0
    for j = 1, #list, 2 do
      at = at + list[j]
      if at >= window.begins and list[j + 1] > 0 then
        sum, last = sum + list[j + 1], at
      end
    end
    if sum == 0 then
      return {}, 0
    end
    return { min(last, now), sum }, sum
  end

  function calendar.add(spent, _, at, count)
    return { max(at, spent[1] or at), (spent[2] or 0) + count }
  end

  function calendar.add_late(spent, window, at, count)
    if at < window.begins then
      return spent, 0
    end
    return calendar.add(spent, window, at, count), count
  end

  function calendar.ends(_, window)
    return window.ends
  end

  calendar.returns = calendar.ends
  return calendar
end

-- At least this long, in microseconds, are lifetime windows: LIFETIME_MS of windows/lifetime-window.ts.
local LIFETIME = 1e15

-- A fixed window that does not end.
local function make_lifetime()
  local lifetime = make_fixed_window()

  function lifetime.ends()
    return math.huge
  end

  return lifetime
end

local algorithms = { s = sliding_window }
local makers = { f = make_fixed_window, t = make_token_bucket, c = make_calendar, l = make_lifetime }

local function make_algorithm(letter)
  algorithms[letter] = makers[letter]()
  return algorithms[letter]
end
