--[[ Commit a batch of changes with one write to the disk, each as `commit.lua` does: all of it, or none.

That script precedes this one as the function `commit`.

KEYS  the keys of every change, one after the other.
ARGV  the number of changes; then for each the number of its keys, the number of its arguments, its arguments.

Returns what `commit.lua` returns, for each.
]]

local answers, key, at = {}, 0, 2
for one = 1, tonumber(ARGV[1]) do
  local keys, count, last = {}, tonumber(ARGV[at]), at + 1 + tonumber(ARGV[at + 1])
  for place = 1, count do
    keys[place] = KEYS[key + place]
  end
  answers[one] = commit(keys, {unpack(ARGV, at + 2, last)})
  key, at = key + count, last + 1
end
return answers
