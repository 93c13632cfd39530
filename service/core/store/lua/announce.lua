#!lua
--[[ Announce that a worker takes runs at once.

KEYS  the waiting workers.
ARGV  the worker and how long it waits, ms.

Returns the server's time, seconds and microseconds.
]]

local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2]), ARGV[1])
return time
