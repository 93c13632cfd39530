#!lua flags=no-writes
--[[ Return the number of members of each bucket.

KEYS  the buckets.
ARGV  times, ms: with them, return for each bucket how many members are due until each of them.
]]

local counts = {}
for _, key in ipairs(KEYS) do
  if #ARGV == 0 then
    counts[#counts + 1] = redis.call('ZCARD', key)
  end
  for _, until_ms in ipairs(ARGV) do
    counts[#counts + 1] = redis.call('ZCOUNT', key, '-inf', until_ms)
  end
end
return counts
