#!lua
--[[ Put an earlier version of the rules in force, and withdraw the one it replaces.

A withdrawn version does not come back when a process starts with its file or changes to it, also where another Sayso
gives the same bytes another version. The header of `commit.lua` names the keys.

KEYS  the hash of versions; the rules in force; the list of changes.
ARGV  the version, its rules, the digest of its bytes, who restores it, the version it replaces, the digest of that
      one's bytes, the limit of changes.

Returns the version in force afterwards, which is another one if `ARGV[5]` is no longer in force.
]]

local key, version = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local force = redis.call('HGET', key, 'in-force')
if force ~= ARGV[5] then
  return force or ''
end

local withdrawn, known = {force, ARGV[6]}, {[version] = true, [ARGV[3]] = true, [force] = true, [ARGV[6]] = true}
for name in string.gmatch(redis.call('HGET', key, 'withdrawn') or '', '%S+') do
  if not known[name] and #withdrawn < 100 then
    withdrawn[#withdrawn + 1] = name
  end
end
redis.call('HSET', key, 'in-force', version, 'pinned', version, 'withdrawn', table.concat(withdrawn, ' '))
redis.call('SET', KEYS[2], ARGV[2])
local change = {version = version, digest = ARGV[3], at_ms = string.format('%.0f', now), how = 'restored', by = ARGV[4]}
redis.call('RPUSH', KEYS[3], cjson.encode(change))
redis.call('LTRIM', KEYS[3], -tonumber(ARGV[7]), -1)
return version
