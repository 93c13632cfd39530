#!lua
--[[ Commit one change of one suspension: all of it, or none.

The data model. Every key of a tenant carries the hash tag {tenant}; all live until retention removes them, unless a
lifetime is given.

  sayso:{t}:s:<suspension>  string  "version|seq|hash|commit|" and the packed record: seq and hash are the head of the
                                    run's trail, commit the id of the last commit (it settles a lost reply)
  sayso:{t}:r:<run>         string  the run's latest suspension; all that is known of the run stands in its record
  sayso:{t}:e:<run>         list    the trail: one JSON entry an event, numbered from 1, chained by hash
  sayso:{t}:head:<run>      string  "seq|hash": where the trail of a forgotten run ends; goes with the trail
  sayso:{t}:state:<run>     string  the paused run's own state, sealed by the digest in the record
  sayso:{t}:told:<run>      list    what others told of the run, as it came; goes with the run; see `told.lua`
  sayso:{t}:told-seen:<run> hash    "<source> <seq>" -> digest of the event of that number; "bytes": how many are kept
  sayso:{t}:schedule          zset    suspension -> next moment somebody must look, ms
  sayso:{t}:inbox           zset    pending suspension -> earliest deadline, ms
  sayso:{t}:open            zset    "<suspension> <item>" of every open item, and the suspension of every run at work
                                    without one -> when that suspension was made, ms; limits count its members
  sayso:{t}:open-of:<owner> zset    the same of one owner
  sayso:{t}:pace            string  when all may ask again without limit, µs; a minute at most; see `pace.lua`
  sayso:{t}:pace-of:<owner> string  the same of one owner
  sayso:{t}:decided         zset    suspension that was asked and is no longer pending -> moment, ms
  sayso:{t}:ready           list    suspensions that a worker is to take up, oldest first: the id, a space, and what was
                                    saved, so that whoever takes it need not look before trying
  sayso:{t}:runs:<status>   zset    run -> its start, ms; suspended runs are found through the inbox
  sayso:{t}:runs-of:<owner> zset    run -> its start, ms
  sayso:{t}:owners          set     everybody who ever asked for a run
  sayso:{t}:idem:<hash>     string  "1|fingerprint|ref": what an Idempotency-Key was used for and made; 24 hours, or as
                                    long as the protocol promises that it came over
  sayso:{t}:aap:<instance>  string  "version|" and an instance of the Agent Approval Protocol as JSON
  sayso:{t}:aap-gone:<instance>  string  "1|": there for 7 days once the instance was deleted; nothing is asked for it
  sayso:{t}:delivery:<event>  string  "version|" and a signed message to be delivered as JSON; 24 hours once it ended
  sayso:{t}:deliveries      zset    event, or instance whose deletion is not through -> when to try next, ms
  sayso:{t}:trails          zset    forgotten run whose trail is still kept -> its end, ms; see `retention.py`
  sayso:{t}:retained        string  there while old runs were forgotten not long ago; an hour
  sayso:{t}:freezes         hash    freeze -> who has frozen what, when and why; written outside of this script
  sayso:{t}:rules           hash    "in-force": the version of the rules in force; "p:<process>": "version|moment|file" it
                                    holds; "f:<file>": the version it last had; "v:<version>": when it was last told of;
                                    see `rules.lua`
  sayso:{t}:rulebook        string  the rules in force, as JSON
  sayso:{t}:clock           hash    "beat": the clocks' last beat; "mark": the latest moment known to be right, ms;
                                    written outside of this script
  sayso:{t}:definitions     hash    digest of a tool's definition -> the definition as JSON
  sayso:changes:<topic>     channel of a tenant, a suspension or a run: a hint that it moved, never the truth

KEYS  every key that is touched.
ARGV  the first and the last moment, ms, at which the commit may go through (both "0": at any); the number of guards;
      for each guard a key's place and the version it must have ("0": must not exist), or "<" and the number of members
      that it may have at most; then for each write the number of
      its arguments, the command, the key's place, the arguments.

Returns {0, seconds, microseconds} when committed, with the server's time, else {the place of the first guard that did
not hold, or -1 for the time}; then nothing was written. The header line makes a full server refuse the script before
its first write.
]]

local allowed = {
  SET = true, DEL = true, RPUSH = true, SADD = true, ZADD = true, ZREM = true, PEXPIRE = true, PUBLISH = true,
}

local time = redis.call('TIME')
if ARGV[2] ~= '0' then
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if now < tonumber(ARGV[1]) or now > tonumber(ARGV[2]) then
    return {-1}
  end
end

local guards = tonumber(ARGV[3])
for i = 1, guards do
  local key, wanted = KEYS[tonumber(ARGV[2 * i + 2])], ARGV[2 * i + 3]
  if string.sub(wanted, 1, 1) == '<' then
    if redis.call('ZCARD', key) > tonumber(string.sub(wanted, 2)) then
      return {i}
    end
  else
    local head = redis.call('GETRANGE', key, 0, 19)
    local version = string.match(head, '^%d+') or '0'
    if version ~= wanted then
      return {i}
    end
  end
end

local first = 2 * guards + 4
local at = first
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  if not allowed[ARGV[at + 1]] or not KEYS[tonumber(ARGV[at + 2])] or at + 2 + count > #ARGV then
    return redis.error_reply('SAYSO malformed write ' .. tostring(ARGV[at + 1]))
  end
  at = at + 3 + count
end

at = first
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  redis.call(ARGV[at + 1], KEYS[tonumber(ARGV[at + 2])], unpack(ARGV, at + 3, at + 2 + count))
  at = at + 3 + count
end
return {0, time[1], time[2]}
