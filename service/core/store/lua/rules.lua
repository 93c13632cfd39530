#!lua
--[[ Record the rules of a process, and put them in force if they are newer.

They are newer if the file changed under a running process, if the file and its version are both new, or if the file
changed since its last publication. If no live process has the rules in force, a starting process replaces them, unless
a person put them in force. A version that was withdrawn, or whose bytes too few people attested, is held back. The
header of `commit.lua` names the keys.

KEYS  the hash of versions; the rules in force; the list of changes.
ARGV  the process, its file, its version, the rules (empty: only report that it is alive), "start", "changed" or "held",
      the ms for which a process counts as alive, how many people must still attest this version, the digest of its
      bytes, the limit of changes.

Returns {the version in force, 1 if a live process or a person holds it, else 0, why this version is held back}.
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

if force and redis.call('HGET', key, 'pinned') == force then
  alive = true
end

if ARGV[4] ~= '' and version ~= force then
  local withdrawn = ' ' .. (redis.call('HGET', key, 'withdrawn') or '') .. ' '
  for _, name in ipairs({version, ARGV[8]}) do
    if string.find(withdrawn, ' ' .. name .. ' ', 1, true) then
      return {force or '', alive and 1 or 0, 'withdrawn'}
    end
  end
  if tonumber(ARGV[7]) > 0 then
    return {force or '', alive and 1 or 0, 'unattested'}
  end
end

if ARGV[4] ~= '' then
  local before = redis.call('HGET', key, 'f:' .. file)
  local known = redis.call('HEXISTS', key, 'v:' .. version) == 1
  local newer = how == 'changed' or (before and before ~= version) or (not before and not known)
  if not force or (version ~= force and (newer or not alive)) then
    redis.call('HSET', key, 'in-force', version)
    redis.call('HDEL', key, 'pinned')
    redis.call('SET', KEYS[2], ARGV[4])
    local change = {version = version, digest = ARGV[8], at_ms = string.format('%.0f', now), how = how, by = process}
    redis.call('RPUSH', KEYS[3], cjson.encode(change))
    redis.call('LTRIM', KEYS[3], -tonumber(ARGV[9]), -1)
    force, alive = version, true
  end
  redis.call('HSET', key, 'f:' .. file, version, 'v:' .. version, string.format('%.0f', now))
end
return {force or '', alive and 1 or 0, ''}
