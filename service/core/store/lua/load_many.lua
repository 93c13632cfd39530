#!lua flags=no-writes
--[[ Read many suspensions and the server's time in one round trip.

KEYS  the suspensions.
Returns {seconds, microseconds, the values in order, false for a missing one}.
]]

local time = redis.call('TIME')
return {time[1], time[2], redis.call('MGET', unpack(KEYS))}
