#!lua
--[[ Keep what a source tells of a run: all of one request, or nothing of it. The header of `commit.lua` names the keys.

KEYS  the run, the list, the hash of what is there.
ARGV  the most events and the most bytes of one run; the run's channel; then for each event its place ("<source> <seq>"),
      its digest, and what is kept of it behind the moment.

Returns {0, how many were new, how many there are now}, or {1} where there is no such run, {2, n} where the n-th event
is there already with other content, {3, events} or {4, bytes} where the run would have too many.
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
