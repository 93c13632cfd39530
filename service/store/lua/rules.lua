#!lua
--[[ Record the rules of a process, and put them in force if they are newer.

They are newer if the file changed under a running process, if the file and its version are both new, or if the file
changed since its last publication. If no live process has the rules in force, a starting process replaces them. The
header of `commit.lua` names the keys.

KEYS  the hash of versions; the rules in force.
ARGV  the process, its file, its version, the rules (empty: only report that it is alive), "start", "changed" or "held",
      the ms for which a process counts as alive.

Returns {the version in force, 1 if a live process has it, else 0}.
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
