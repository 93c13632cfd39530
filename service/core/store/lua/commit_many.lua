--[[ Commit a batch of changes with one write to the disk, each as `commit.lua` does: all of it, or none.

That script precedes this one, without its last line.

KEYS  the keys of all changes, each once.
ARGV  the last time, ms, at which the batch may be committed, or 0; then all changes as one text of 4-byte numbers and
      texts: for each the number of its keys, the places of these in KEYS, the number of its arguments, and each
      argument after its length.

Writes to a key of several changes are joined to one command where their order does not matter. A change that the
server cannot write fails alone.

Returns what `commit.lua` returns, for each; nothing after the last time.
]]

local time = redis.call('TIME')
if ARGV[1] ~= '0' and time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[1]) then
  return {}
end

local joins = {ZADD = 'ZADD', ZREM = 'ZREM', ['RPUSH COPY'] = 'RPUSH', PUBLISH = 'PUBLISH'}
local most = 1000
local writes, removals, shared = {}, {}, {}
local joined = {}

function joined.add(command, key, args, first, last, absent)
  if command == 'HDEL UNLESS' then
    removals[absent] = {key, args[last]}
    return true
  end
  if not shared[key] or not joins[command] or command == 'ZADD' and not tonumber(args[first]) then
    return false
  end
  local name = command .. key
  local write = writes[name]
  if not write then
    write = {joins[command], key}
    writes[name] = write
    writes[#writes + 1] = write
  end
  for at = first, last do
    write[#write + 1] = args[at]
  end
  return true
end

function joined.write()
  for _, write in ipairs(writes) do
    if write[1] == 'PUBLISH' then
      redis.call('PUBLISH', write[2], table.concat(write, ' ', 3))
    else
      for at = 3, #write, most do
        redis.call(write[1], write[2], unpack(write, at, math.min(at + most - 1, #write)))
      end
    end
  end
  for absent, field in pairs(removals) do
    if redis.call('EXISTS', absent) == 0 then
      redis.call('HDEL', field[1], field[2])
    end
  end
  writes, removals = {}, {}
end

local function read(form, at)
  local count, first = struct.unpack('<I4', ARGV[2], at)
  local found = {struct.unpack('<' .. string.rep(form, count), ARGV[2], first)}
  return found, table.remove(found)
end

local changes, used, at = {}, {}, 1
while at <= #ARGV[2] do
  local keys, args
  keys, at = read('I4', at)
  for place, number in ipairs(keys) do
    local key = KEYS[number]
    keys[place] = key
    shared[key], used[key] = used[key], true
  end
  args, at = read('I4c0', at)
  changes[#changes + 1] = {keys, args}
end

local answers = {}
for place, change in ipairs(changes) do
  local done, answer = pcall(commit, change[1], change[2], joined)
  answers[place] = done and answer or redis.error_reply('SAYSO not written')
end
joined.write()
return answers
