#!lua
--[[ Count facts for the insights, each once: all of them are removed from the queue and counted, or nothing is written.

KEYS  the queue of facts, then the hashes of hours and days.
ARGV  the most fields of a hash; the number of facts, and each in its stored form; then for each hash its lifetime, ms,
      the number of its counts, and for each count the metric, the name and the increment. In a full hash a new name is
      counted under the empty name.

Returns the places of the facts that are no longer in the queue: with any, nothing was counted.
]]

local most, facts = tonumber(ARGV[1]), tonumber(ARGV[2])
local missing = {}
for place, score in ipairs(redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 3, 2 + facts))) do
  if not score then
    missing[#missing + 1] = place
  end
end
if #missing > 0 then
  return missing
end
redis.call('ZREM', KEYS[1], unpack(ARGV, 3, 2 + facts))

local at = 3 + facts
for place = 2, #KEYS do
  local key, count = KEYS[place], tonumber(ARGV[at + 1])
  local full = redis.call('HLEN', key) + count > most
  for one = 1, count do
    local first = at + 3 * one - 1
    local field = ARGV[first] .. ':' .. ARGV[first + 1]
    if full and redis.call('HEXISTS', key, field) == 0 then
      field = ARGV[first] .. ':'
    end
    redis.call('HINCRBY', key, field, ARGV[first + 2])
  end
  redis.call('PEXPIRE', key, ARGV[at])
  at = at + 2 + 3 * count
end
return missing
