#!lua flags=no-writes
--[[ Read one suspension, the server's time, and whether a request was seen before, in one round trip.

KEYS  the suspension's hash; optionally the idempotency hash.
Returns {seconds, microseconds, {v, doc, seq, hash, c}, {fingerprint, ref}}.
]]

local time = redis.call('TIME')
local record = redis.call('HMGET', KEYS[1], 'v', 'doc', 'seq', 'hash', 'c')
local seen = {}
if KEYS[2] then
  seen = redis.call('HMGET', KEYS[2], 'fingerprint', 'ref')
end
return {time[1], time[2], record, seen}
