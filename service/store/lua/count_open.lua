#!lua flags=no-writes
--[[ Return the number of members of each bucket.

KEYS  the buckets.
]]

local counts = {}
for i, key in ipairs(KEYS) do
  counts[i] = redis.call('ZCARD', key)
end
return counts
