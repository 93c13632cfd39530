#!lua flags=no-writes
--[[ Read counters of rules and the server's time in one round trip. The header of `commit.lua` names the keys.

KEYS  the counters.
ARGV  for each the length of its slots, ms, and the number of slots before the current one that count; both "0" for one
      that holds amounts.

Returns {seconds, microseconds, then for each its total, or its latest amounts}.
]]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {time[1], time[2]}
for i = 1, #KEYS do
  local ms, count = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  if ms == 0 then
    found[i + 2] = redis.call('LRANGE', KEYS[i], 0, -1)
  else
    local total, first, slots = 0, math.floor(now / ms) - count, redis.call('HGETALL', KEYS[i])
    for n = 1, #slots, 2 do
      if tonumber(slots[n]) >= first then
        total = total + tonumber(slots[n + 1])
      end
    end
    found[i + 2] = string.format('%.0f', total)
  end
end
return found
