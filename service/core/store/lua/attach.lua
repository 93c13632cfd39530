#!lua
--[[ Save a file that is attached to an item. The header of `commit.lua` names the keys.

KEYS  the run, the hash of its files, the hash of their contents, the bytes of all files of the tenant, and of each share.
ARGV  the most files of one item; the most bytes of all files; the run's channel; the item ("<suspension> <item> "); the
      file's id; its description as JSON, for behind the time; its content; the most bytes of a share; the shares of
      its author.

Returns {0} also for a file that is saved already; {1} without such a run; {2}, {3, bytes} or {4, bytes} over a limit.
]]

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {1}
end
local name = ARGV[4] .. ARGV[5]
if redis.call('HEXISTS', KEYS[2], name) == 1 then
  return {0}
end
local files = 0
for _, other in ipairs(redis.call('HKEYS', KEYS[2])) do
  if string.sub(other, 1, #ARGV[4]) == ARGV[4] then
    files = files + 1
  end
end
if files >= tonumber(ARGV[1]) then
  return {2}
end
local bytes = tonumber(redis.call('GET', KEYS[4]) or '0')
if bytes + #ARGV[7] > tonumber(ARGV[2]) then
  return {3, bytes}
end
for place = 9, #ARGV do
  local share = tonumber(redis.call('HGET', KEYS[5], ARGV[place]) or '0')
  if share + #ARGV[7] > tonumber(ARGV[8]) then
    return {4, share}
  end
end
local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. math.floor(time[2] / 1000), -3)
redis.call('HSET', KEYS[2], name, now .. '|' .. ARGV[6])
redis.call('HSET', KEYS[3], ARGV[5], ARGV[7])
redis.call('HINCRBY', KEYS[2], 'bytes', #ARGV[7])
redis.call('INCRBY', KEYS[4], #ARGV[7])
for place = 9, #ARGV do
  redis.call('HINCRBY', KEYS[5], ARGV[place], #ARGV[7])
  redis.call('HINCRBY', KEYS[2], 'share ' .. ARGV[place], #ARGV[7])
end
redis.call('PUBLISH', ARGV[3], '')
return {0}
