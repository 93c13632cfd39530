#!lua
--[[ Number a turn of a thread, and read the tools that ran in it. The header of `commit.lua` names the keys.

KEYS  the thread, and its tools.
ARGV  the turn, the highest number of a turn, the last place of the tools to read, and the lifetime of a thread, s.

Returns {the number, the tools}. The same turn always has the same number.
]]

local tools = redis.call('ZRANGE', KEYS[2], 0, ARGV[3])
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known then
  return {tonumber(known), tools}
end
local number = redis.call('HLEN', KEYS[1]) + 1
if number > tonumber(ARGV[2]) then
  return {tonumber(ARGV[2]), tools}
end
redis.call('HSET', KEYS[1], ARGV[1], number)
redis.call('EXPIRE', KEYS[1], ARGV[4])
return {number, tools}
