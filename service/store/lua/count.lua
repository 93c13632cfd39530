#!lua
--[[ Count facts for the insights, each once: the script removes a fact from the queue and counts it, or does nothing.

KEYS  the queue of facts, then the hashes of hours and days.
ARGV  the most fields of a hash; the number of hashes and the lifetime of each, ms; then for each fact its stored form,
      the number of its counts, and for each count the number of its hash, the metric, the name and the increment. In a
      full hash a new name is counted under the empty name.

Returns how many facts were counted.
]]

local most, hashes = tonumber(ARGV[1]), tonumber(ARGV[2])
local counted, at = 0, 3 + hashes
while at <= #ARGV do
  local fresh = redis.call('ZREM', KEYS[1], ARGV[at]) == 1
  local count = tonumber(ARGV[at + 1])
  at = at + 2
  for one = 1, count do
    if fresh then
      local place, field = tonumber(ARGV[at]), ARGV[at + 1] .. ':' .. ARGV[at + 2]
      local key = KEYS[1 + place]
      if redis.call('HEXISTS', key, field) == 0 and redis.call('HLEN', key) >= most then
        field = ARGV[at + 1] .. ':'
      end
      redis.call('HINCRBY', key, field, ARGV[at + 3])
      redis.call('PEXPIRE', key, ARGV[2 + place])
    end
    at = at + 4
  end
  counted = counted + (fresh and 1 or 0)
end
return counted
