#!lua
--[[ Note which rules a process holds, and put them in force where they are newer than those that are.

They are newer where the file changed under a process, where a file nobody has told of brings rules nobody has told of,
or where a file changed since it was last told of. Where no live process holds the rules in force any more, those of the
next that starts are taken. The header of `commit.lua` names the keys.

KEYS  the hash of who holds what; the rules in force.
ARGV  the process, its file, the version it holds, the rules themselves (empty: it only tells that it lives), how it came
      to them ("start", "changed" or "held"), for how many ms a process counts as alive.

Returns {the version in force, 1 where a live process holds it or 0}.
]]

local key, process, file, version, how = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local force = redis.call('HGET', key, 'in-force')

redis.call('HSET', key, 'p:' .. process, version .. '|' .. string.format('%.0f', now) .. '|' .. file)
local alive = false
local fields = redis.call('HGETALL', key)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'p:' then
    local held, at = string.match(fields[i + 1], '^([^|]*)|(%d+)|')
    if not at or now - tonumber(at) > tonumber(ARGV[6]) then
      redis.call('HDEL', key, fields[i])
    elseif held == force then
      alive = true
    end
  end
end

if ARGV[4] ~= '' then
  local before = redis.call('HGET', key, 'f:' .. file)
  local known = redis.call('HEXISTS', key, 'v:' .. version) == 1
  local newer = how == 'changed' or (before and before ~= version) or (not before and not known)
  if not force or (version ~= force and (newer or not alive)) then
    redis.call('HSET', key, 'in-force', version)
    redis.call('SET', KEYS[2], ARGV[4])
    force, alive = version, true
  end
  redis.call('HSET', key, 'f:' .. file, version, 'v:' .. version, string.format('%.0f', now))
end
return {force or '', alive and 1 or 0}
