#!lua
--[[ Set the next attempt of a lane from its earliest message, or remove an empty lane.

KEYS  the lane; the list of lanes.
ARGV  the lane's name in the list; the earliest time of the next attempt, ms.
]]

local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if #first == 0 then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 0
end
local at = math.max(tonumber(first[2]), tonumber(ARGV[2]))
redis.call('ZADD', KEYS[2], string.format('%.0f', math.ceil(at)), ARGV[1])
return 1
