#!lua
--[[ Admit one request, if every one of its paces allows it; count it against none otherwise.

Each key holds the moment, µs of the server's time, at which its pace would be idle again: a request moves it on by the
pace's interval, and is refused where that would be further ahead than the burst. What is lost by a crash is forgotten
within a burst's time. A moment further ahead than any request can have put it is from a clock that went back.

KEYS  a pace each.
ARGV  for each the interval between two requests and the length of its burst, µs.

Returns {0}, or {the place of the first pace that refuses, the µs until it admits one}.
]]

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local next = {}
for i = 1, #KEYS do
  local interval, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local idle = tonumber(redis.call('GET', KEYS[i]) or '0')
  if idle < now or idle > now + burst then
    idle = now
  end
  next[i] = idle + interval
  if next[i] > now + burst then
    return {i, next[i] - now - burst}
  end
end
for i = 1, #KEYS do
  local left = math.ceil((next[i] - now) / 1000)
  redis.call('SET', KEYS[i], string.format('%.0f', next[i]), 'PX', math.max(left, 1))
end
return {0}
