--[[ Commit a batch of changes with one write to the disk, each as `commit.lua` does: all of it, or none.

That script precedes this one as the function `commit`.

KEYS  the keys of every change, one after the other.
ARGV  the last time, ms, at which the batch may be committed, or 0; the number of changes; then for each the number of
      its keys, the number of its arguments, its arguments.

Returns what `commit.lua` returns, for each; nothing after the last time.
]]

local time = redis.call('TIME')
if ARGV[1] ~= '0' and time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[1]) then
  return {}
end

local answers, key, at = {}, 0, 3
for one = 1, tonumber(ARGV[2]) do
  local keys, count, last = {}, tonumber(ARGV[at]), at + 1 + tonumber(ARGV[at + 1])
  for place = 1, count do
    keys[place] = KEYS[key + place]
  end
  answers[one] = commit(keys, {unpack(ARGV, at + 2, last)})
  key, at = key + count, last + 1
end
return answers
