#!lua flags=no-writes
--[[ Read the grants or mandates that have not ended, and the server's time. The header of `commit.lua` names the keys.

KEYS  the grants, or the mandates; then the grants of each rule for an agent, or the mandates of each conversation.

Returns {seconds, microseconds, then for each of those the ids of its grants or mandates, and these as JSON}.
]]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {time[1], time[2]}
for i = 2, #KEYS do
  local ids = redis.call('ZRANGEBYSCORE', KEYS[i], '(' .. string.format('%.0f', now), '+inf')
  found[2 * i - 1] = ids
  found[2 * i] = #ids > 0 and redis.call('HMGET', KEYS[1], unpack(ids)) or {}
end
return found
