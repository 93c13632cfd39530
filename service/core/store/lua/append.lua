#!lua
--[[ Append external events or comments to those of a run: all of one request, or none. The header of `commit.lua` names
the keys.

KEYS  the run, the list of the entries, the hash of their digests.
ARGV  the most entries and the most bytes of one run; the run's channel; then for each entry its name (for an event
      "<source> <seq>"), its digest, and the entry after the time.

Returns {0, new entries, all entries}; {1} without such a run; {2, n} where the name of the n-th entry has other content;
{3, entries} or {4, bytes} over a limit.
]]

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {1}
end
local fresh, bytes, mine = {}, 0, {}
for i = 4, #ARGV, 3 do
  local held = mine[ARGV[i]] or redis.call('HGET', KEYS[3], ARGV[i])
  if held and held ~= ARGV[i + 1] then
    return {2, (i - 4) / 3}
  end
  if not held then
    mine[ARGV[i]] = ARGV[i + 1]
    fresh[#fresh + 1] = i
    bytes = bytes + #ARGV[i + 2]
  end
end
local count = redis.call('LLEN', KEYS[2])
if #fresh == 0 then
  return {0, 0, count}
end
if count + #fresh > tonumber(ARGV[1]) then
  return {3, count}
end
local kept = tonumber(redis.call('HGET', KEYS[3], 'bytes') or '0')
if kept + bytes > tonumber(ARGV[2]) then
  return {4, kept}
end
local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. math.floor(time[2] / 1000), -3)
redis.call('HINCRBY', KEYS[3], 'bytes', bytes)
for _, i in ipairs(fresh) do
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  redis.call('RPUSH', KEYS[2], now .. '|' .. ARGV[i + 2])
end
redis.call('PUBLISH', ARGV[3], '')
return {0, #fresh, count + #fresh}
