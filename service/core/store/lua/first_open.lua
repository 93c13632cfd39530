#!lua flags=no-writes
--[[ Return the first open items of several buckets, by deadline and then by name.

KEYS  the buckets.
ARGV  the deadline, ms, and the member after which to begin (the member empty: with that deadline); the most items;
      the latest deadline, ms, or +inf.

Returns member, deadline, member, deadline and so on.
]]

local from, after, most, to = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- Append up to `most` entries of a bucket that come after the given one.
local function list(key, count, into)
  local offset, found = 0, 0
  while found < count do
    local page = redis.call('ZRANGE', key, from, to, 'BYSCORE', 'LIMIT', offset, count, 'WITHSCORES')
    for i = 1, #page, 2 do
      if found < count and (tonumber(page[i + 1]) > tonumber(from) or page[i] > after) then
        found = found + 1
        into[#into + 1] = {page[i], page[i + 1], key}
      end
    end
    if #page < 2 * count then
      return
    end
    offset = offset + count
  end
end

local function precedes(one, other)
  local first, second = tonumber(one[2]), tonumber(other[2])
  return first < second or (first == second and one[1] < other[1])
end

-- Only the buckets whose first items are the earliest can hold the items to return.
local heads, entries = {}, {}
for _, key in ipairs(KEYS) do
  list(key, 1, heads)
end
table.sort(heads, precedes)
for i = 1, math.min(#heads, most) do
  list(heads[i][3], most, entries)
end
table.sort(entries, precedes)
local answer = {}
for i = 1, math.min(#entries, most) do
  answer[#answer + 1] = entries[i][1]
  answer[#answer + 1] = entries[i][2]
end
return answer
