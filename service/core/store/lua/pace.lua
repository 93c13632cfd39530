--[[ Admit one request if all its paces allow it; otherwise count it for none.

Each key holds the time, µs, at which its pace is idle again (GCRA). A request adds the interval, and is refused where
the sum is further ahead than the burst. A time further ahead than the burst comes from a clock that went back.

`recall.lua` precedes this script as the function `recall`: a request is judged by counters read in the same round trip.

KEYS  the paces, then counters to read.
ARGV  the number of paces; for each the interval between two requests and the length of its burst, µs; then what
      `recall.lua` needs.

Returns {0, what `recall.lua` returns}, or {the number of the first pace that refuses, the µs until it admits a request}.
]]

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local paces, next = tonumber(ARGV[1]), {}
for i = 1, paces do
  local interval, burst = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local idle = tonumber(redis.call('GET', KEYS[i]) or '0')
  if idle < now or idle > now + burst then
    idle = now
  end
  next[i] = idle + interval
  if next[i] > now + burst then
    return {i, next[i] - now - burst}
  end
end
for i = 1, paces do
  local left = math.ceil((next[i] - now) / 1000)
  redis.call('SET', KEYS[i], string.format('%.0f', next[i]), 'PX', math.max(left, 1))
end
return {0, recall({unpack(KEYS, paces + 1)}, {unpack(ARGV, 2 * paces + 2)})}
