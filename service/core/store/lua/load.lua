#!lua flags=no-writes
--[[ Read one suspension, the server's time and an Idempotency-Key in one round trip.

KEYS  the suspension; optionally the Idempotency-Key.
Returns {seconds, microseconds, the first value or false, the second value or false}.
]]

local time = redis.call('TIME')
return {time[1], time[2], redis.call('GET', KEYS[1]), KEYS[2] and redis.call('GET', KEYS[2]) or false}
