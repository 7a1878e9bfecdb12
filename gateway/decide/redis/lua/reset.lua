-- Resets a counter, and notes when: requests that were charged before must not give back what others spend after.
--
-- KEYS  1: the counter, 2: the time of its last reset
-- ARGV  1: how long that is kept, in milliseconds; longer than requests last

local time = redis.call('TIME')
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000000 + time[2]), 'PX', ARGV[1])
