#!lua flags=no-writes
--[[ Read one suspension, the server's time, and whether a request was seen before, in one round trip.

KEYS  the suspension; optionally what an Idempotency-Key was used for.
Returns {seconds, microseconds, the first value or false, the second value or false}.
]]

local time = redis.call('TIME')
return {time[1], time[2], redis.call('GET', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false}
