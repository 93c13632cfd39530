#!lua
--[[ Commit one change of one suspension: all of it, or none.

The data model. Every key of a tenant has the hash tag {tenant}. Keys without a lifetime stay until retention deletes
them. With a key file, values that may hold a secret are encrypted; see `sealing.py`.

  sayso:{t}:s:<suspension>  string  "version|seq|hash|commit|" and the packed record: seq and hash are the head of the
                                    run's trail, commit the id of the last commit (it settles a lost reply)
  sayso:{t}:r:<run>         string  the run's latest suspension, whose record holds the run
  sayso:{t}:e:<run>         list    the trail: one JSON entry per event, numbered from 1, chained by hash
  sayso:{t}:head:<run>      string  "seq|hash": the end of the trail of a deleted run; deleted with the trail
  sayso:{t}:state:<run>     string  the state of the run, sealed by the digest in the record
  sayso:{t}:external:<run>  list    external events in order of arrival; deleted with the run; see `append.lua`
  sayso:{t}:external-seen:<run>  hash  "<source> <seq>" -> digest of that event; "bytes": their size
  sayso:{t}:comments:<run>  list    reviewers' comments in order; deleted with the trail; see `append.lua`
  sayso:{t}:comments-seen:<run>  hash  comment -> its digest; "bytes": their size
  sayso:{t}:files:<run>     hash    "<suspension> <item> <file>" -> time, ms, "|" and its description as JSON; "bytes": the
                                    size of all, "share <whose>": the part of one; deleted with the run; see `attach.lua`
  sayso:{t}:file-contents:<run>  hash  file -> its bytes
  sayso:{t}:file-bytes      string  the bytes of all attached files
  sayso:{t}:file-shares     hash    "key <id>", "agent <name>" or "human <name>" -> the bytes of what they attached
  sayso:{t}:schedule          zset    suspension -> due time, ms
  sayso:{t}:inbox           zset    pending suspension -> earliest deadline, ms
  sayso:{t}:open            zset    "<suspension> <item>" of every open item, and the suspension of every active run
                                    without one -> creation of the suspension, ms; limits count the members
  sayso:{t}:open-of:<owner> zset    the same of one owner
  sayso:{t}:bucket:<digest> zset    "<suspension> <item>" of the open items with the same facets, without "sus_" -> deadline,
                                    ms; see `facets.py`
  sayso:{t}:buckets         hash    digest -> facets as JSON, of every bucket with members; "complete": since when all
                                    open items are in buckets, ms; "searchable": since when they have texts, ms;
                                    "compared": when they were last compared with the records, ms, and how many
                                    items were wrong
  sayso:{t}:texts:<digest>  hash    member of the bucket -> deadline, ms, and the text that is searched; see `texts.py`
  sayso:{t}:pace            string  when the pace of all requests is idle again, µs; at most a minute; see `pace.lua`
  sayso:{t}:pace-of:<owner> string  the same of one owner
  sayso:{t}:decided         zset    suspension with items that is no longer pending -> time of the change, ms
  sayso:{t}:ready           list    suspensions for workers, the oldest first: the id, a space, and the packed record, so
                                    that a worker needs no look-up before it leases
  sayso:{t}:waiting         zset    worker that takes runs at once -> until when it does, ms; written outside of this script
  sayso:{t}:rush            string  exists for moments while more deadlines pass than the clock can apply at once; written
                                    outside of this script
  sayso:{t}:handed:<worker> list    runs that were leased to a waiting worker, as on the ready list
  sayso:{t}:starts          hash    delay from the ready list to a worker, "<bound, ms>" or "over" -> runs; "ms": the sum of
                                    all delays; written outside of this script
  sayso:{t}:runs:<status>   zset    run -> its start, ms; suspended runs are found through the inbox
  sayso:{t}:runs-of:<owner> zset    run -> its start, ms
  sayso:{t}:owners          set     all owners of runs
  sayso:{t}:idem:<hash>     string  "1|fingerprint|ref": request and result of an Idempotency-Key; 24 hours, or as long as
                                    its protocol promises
  sayso:{t}:aap:<instance>  string  "version|" and an instance of the Agent Approval Protocol as JSON
  sayso:{t}:aap-gone:<instance>  string  "1|": mark of a deleted instance, which cannot suspend any more; 7 days
  sayso:{t}:announcements   zset    an event for webhook endpoints as JSON -> its time, ms; written while `endpoints` exists
  sayso:{t}:endpoints       hash    webhook endpoint -> its URL, owner, state and secrets as JSON; written outside
  sayso:{t}:senders         hash    sender of signed decisions -> its reviewer and secrets as JSON; written outside
  sayso:{t}:delivery:<message>  string  "version|" and a signed message as JSON; 24 hours after it was delivered, 30 days
                                    after it failed
  sayso:{t}:facts           zset    what a commit asked and decided, as JSON -> its time, ms; until `count.lua` counted it
  sayso:{t}:figures:h:<hour>  hash  "<metric>:<tool or person>" -> its count in that hour since 1970; two weeks
  sayso:{t}:figures:d:<day>  hash   the same of a day in UTC; half a year
  sayso:{t}:totals          hash    verdict, outcome or bound of the time to decide, s -> calls or items since the first day;
                                    "ms": the sum of these times; the same behind "call <source> " and "batch <source> "
  sayso:{t}:drilled:<person> zset   "<decision>|<approved>" -> its time, ms: the latest drills of a person; 180 days
  sayso:{t}:sampling        string  the secret that draws items for second looks: 32 bytes, which never change
  sayso:{t}:moving          string  "version|" and the mark of a copy that is not live, as JSON; see `loss/moves.py`
  sayso:{t}:next-drill      string  "1", kept until the next scheduled drill is due
  sayso:{t}:recent:<person> zset    "<decision>|<action>|<look, ms>" -> its time, ms: the latest of a person; 30 days
  sayso:{t}:lane:<endpoint> zset    message for an endpoint or instance -> next attempt, ms, and a fraction by the event's type
  sayso:{t}:deliveries      zset    "lane:" and an endpoint, or "gone:" and an instance whose deletion is not complete ->
                                    next attempt, ms
  sayso:{t}:failures        zset    message that was refused at least once and is not delivered -> last attempt, ms
  sayso:{t}:cards           zset    suspension with a delivery of a card to attempt -> next attempt, ms
  sayso:{t}:card-claim:<suspension>  string  the process that delivers its cards; half a minute
  sayso:{t}:install-state:<sha256>  string  session and channel of an installation under way; minutes
  sayso:{t}:channel-token:<name>  string  token of a channel's app that was installed by OAuth
  sayso:{t}:lease:<name>    string  the process that holds the lease; seconds
  sayso:{t}:presence        zset    "<suspension>-<item> <person>" who has the item's page open -> end, ms; seconds
  sayso:{t}:trails          zset    deleted run whose trail is kept -> its end, ms; see `retention.py`
  sayso:{t}:erased          zset    run whose contents were erased -> when, ms; see `erasures.py`
  sayso:{t}:archive         hash    segment of the archive -> what it holds, as JSON; see `features/archive/store.py`
  sayso:{t}:archive-version  string  "<version>": raised by every change of `archive`
  sayso:{t}:recalled        zset    archived run that is in the store for its readers -> since when, ms
  sayso:{t}:uncut           zset    run in the store that a pass cuts out of the segments that hold it -> 0
  sayso:{t}:retained        string  mark of a recent retention pass; an hour
  sayso:{t}:freezes         hash    freeze -> who froze what, when and why; written outside of this script
  sayso:{t}:rules           hash    "in-force": the version of the rules in force; "p:<process>": its "version|time|file";
                                    "f:<file>": its last version; "v:<version>": its last publication; "pinned": the
                                    version that a person put in force; "withdrawn": the versions that such ones
                                    replaced, and the digests of their bytes;
                                    see `rules.lua` and `restore.lua`
  sayso:{t}:rule-changes    list    which version came into force when and by whom, as JSON, the latest last
  sayso:{t}:rule-versions   zset    version of the rules -> its last saving, ms
  sayso:{t}:rule-version:<version>  string  its bytes and rules, as JSON
  sayso:{t}:attestations:<SHA-256>  hash  person -> when they attested these bytes of a file of rules, ms
  sayso:{t}:replays         zset    replay of rules -> its start, ms; a day
  sayso:{t}:replay:<replay> string  its progress or result, as JSON; a day
  sayso:{t}:rulebook        string  the rules in force, as JSON
  sayso:{t}:rule-hits:<day> hash    rule, or "-" for the default -> the calls that it decided on that UTC day; 40 days
                                    shadow:<rule>:<action> -> the calls that a shadow rule would have decided so
  sayso:{t}:asked-by:<rule> list    "<suspension> <item>" of the rule's last 20 items, the newest first
  sayso:{t}:commits         hash    process -> its commits; see `commit_counts.py`
  sayso:{t}:comparing       hash    process -> "<server> <time, ms>" of its last comparison; written outside of this script
  sayso:{t}:counter:<hash>  hash    slot of a rule's period -> calls or millionths of an amount that started in it; or
                                    list, the latest amounts as "slot|millionths"; a little longer than the period
  sayso:{t}:grants          hash    grant -> what it lets run, until when and by whom, as JSON; a month after its end
  sayso:{t}:grants-of:<hash>  zset  grants of a rule for an agent that are not revoked -> their end, ms; see `grants.lua`
  sayso:{t}:grant-uses      zset    grant or mandate -> its last use, ms
  sayso:{t}:mandates        hash    mandate -> what it lets run, until when and by whom, as JSON; a month after its end
  sayso:{t}:mandates-of:<hash>  zset  mandates of an agent in a conversation that are not revoked -> their end, ms; see
                                    `grants.lua`
  sayso:{t}:grant-trials    hash    "<grant> asked", "approved", "edited" or "denied" -> the calls that the grant would have
                                    allowed on probation, and how people decided them
  sayso:{t}:lessons:<hash>  list    "<suspension> <item> <answer>" of the last 500 calls of a rule for an agent that people
                                    decided, the latest last, if the rule learns grants; 30 days
  sayso:{t}:learning        set     rules for agents with new `lessons`, by the hash of their key
  sayso:{t}:clock           hash    "beat": the last reading of any clock; "mark": the latest time that a clock confirmed, ms;
                                    written outside of this script
  sayso:{t}:precedents:<hash>  list  measures of the last 200 calls of an agent's tool that people approved, as JSON; 180 days
  sayso:{t}:denials:<hash>  list    the last 20 denials of one call by people, as JSON, the latest last; 180 days
  sayso:{t}:returned:<hash>  string  "<suspension> <item>" of a thread and tool whose changes a reviewer requested; 30 days
  sayso:{t}:near-denials:<hash>  list  "<suspension> <item> <run> <agent> <thread> <subjects>" of the last 50 denials by people
                                    of an owner's calls of a tool, as JSON, the latest last; 180 days
  sayso:{t}:thread-tools:<hash>  zset  tool -> its first start in an owner's thread, ms; the first 201; 30 days
  sayso:{t}:last-approval:<hash>  string  "<suspension> <item>": the last item of an agent's tool that a reviewer approved;
                                    180 days
  sayso:{t}:used            hash    id of a key, or "person:" and a name -> the last use, ms; at most once a minute and process
  sayso:{t}:unchecked       hash    run -> its new events since the last checkpoint
  sayso:{t}:checking        hash    the same of the checkpoint under way; written outside of this script
  sayso:{t}:checkpoint      string  "number|SHA-256 of its statement|time, ms" of the last checkpoint
  sayso:{t}:checkpoints     zset    checkpoint with its leaves, as JSON -> its number
  sayso:{t}:checkpoint-of   hash    chain, such as "run <run>" -> the number of the last checkpoint with it
  sayso:{t}:checkpoint-sinks  hash  digest of a sink -> the number of the last checkpoint that it has; "begun": all runs are
                                    covered since checkpoints were turned on; written outside of this script
  sayso:{t}:views           hash    person -> their saved views as JSON; written outside of this script
  sayso:{t}:definitions     hash    digest of a tool definition -> the definition as JSON
  sayso:changes:<topic>     channel of a tenant, suspension or run: a hint that it changed

KEYS  every key that the script uses.
ARGV  the first and the last time of the commit, ms (both "0": any time); the number of guards, and each of them: its
      name, the number of a key, and its arguments; then for each write the number of its arguments, the command, the
      number of the key, the arguments.

      VERSION  the required version of the key; "0": it must not exist
      COMMITS  a process, and the least count of its commits
      MEMBERS  the most members that it may have
      LENGTH   the exact number of entries of the list, or of fields of the hash
      TOTAL    for a counter: the most that the slot that is written, a count of slots before it and all later ones may
               hold; that count; the slot, which may be over for at most one slot; the length of a slot, ms
      WAITING  for the waiting workers: the numbers of a worker's list and of the ready list; the most that the first may
               hold before the commit; the worker, which must wait, with nothing on the ready list

      A command with IF names a key before its arguments, and is skipped unless that key exists; one with UNLESS, if it
      exists. RPUSH COPY appends its first argument and what this change SET before to the key that its second numbers.
      COUNT adds its second argument to the slot of a counter, the first; with a new slot, it deletes the slots before
      its third, if there are many, and renews the lifetime, ms, the fourth. COMMITTED counts a commit of the process
      that its argument names.

Returns {0, seconds, microseconds} with the server's time, and the number after COMMITTED, when committed; else {the number of the first guard that failed,
or -1 for the time}, and nothing was written. Because of the header line a full server refuses the script before its
first write.
]]

local allowed = {
  SET = true, DEL = true, RPUSH = true, LPUSH = true, LTRIM = true, LREM = true, SADD = true, ZADD = true, ZREM = true,
  HDEL = true, HSET = true, HINCRBY = true, HSETNX = true, DECRBY = true, PEXPIRE = true, PUBLISH = true, COUNT = true, COMMITTED = true, ZREMRANGEBYRANK = true,
}
local conditional = {['ZADD IF'] = {'ZADD', 1}, ['HDEL UNLESS'] = {'HDEL', 0}, ['HINCRBY IF'] = {'HINCRBY', 1}}

local function total(now, key, most, count, slot, ms)
  local current = math.floor(now / tonumber(ms))
  if tonumber(slot) < current - 1 then
    return false
  end
  local sum, first, slots = 0, math.min(current, tonumber(slot)) - tonumber(count), redis.call('HGETALL', key)
  for i = 1, #slots, 2 do
    if tonumber(slots[i]) >= first then
      sum = sum + tonumber(slots[i + 1])
    end
  end
  return sum <= tonumber(most)
end

local function waits(now, keys, key, handed, ready, most, worker)
  local until_ms = redis.call('ZSCORE', key, worker)
  return until_ms and tonumber(until_ms) > now and redis.call('LLEN', keys[tonumber(handed)]) <= tonumber(most)
    and redis.call('LLEN', keys[tonumber(ready)]) == 0
end

local function add(key, slot, amount, first, kept)
  if redis.call('HINCRBY', key, slot, amount) ~= tonumber(amount) then
    return
  end
  redis.call('PEXPIRE', key, kept)
  if redis.call('HLEN', key) <= 128 then
    return
  end
  for _, other in ipairs(redis.call('HKEYS', key)) do
    if tonumber(other) < tonumber(first) then
      redis.call('HDEL', key, other)
    end
  end
end

local function holds(keys, args, at, now, joined)
  local name, key = args[at], keys[tonumber(args[at + 1])]
  if name == 'VERSION' then
    return (string.match(redis.call('GETRANGE', key, 0, 19), '^%d+') or '0') == args[at + 2], 3
  elseif name == 'COMMITS' then
    return tonumber(redis.call('HGET', key, args[at + 2]) or '0') >= tonumber(args[at + 3]), 4
  elseif name == 'TOTAL' then
    return total(now, key, unpack(args, at + 2, at + 5)), 6
  elseif name == 'LENGTH' then
    local is_hash = redis.call('TYPE', key).ok == 'hash'
    return redis.call(is_hash and 'HLEN' or 'LLEN', key) == tonumber(args[at + 2]), 3
  end
  if joined then
    joined.write()
  end
  if name == 'MEMBERS' then
    return redis.call('ZCARD', key) <= tonumber(args[at + 2]), 3
  end
  return waits(now, keys, key, unpack(args, at + 2, at + 5)), 6
end

local function commit(keys, args, joined)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if args[2] ~= '0' and (now < tonumber(args[1]) or now > tonumber(args[2])) then
    return {-1}
  end
  local first, last = 4, #args
  for guard = 1, tonumber(args[3]) do
    local held, length = holds(keys, args, first, now, joined)
    if not held then
      return {guard}
    end
    first = first + length
  end

  local at, values = first, {}
  while at <= last do
    local command = args[at + 1]
    if command == 'SET' then
      values[args[at + 2]] = args[at + 3]
    end
    local known = allowed[command] or conditional[command] or command == 'RPUSH COPY' and values[args[at + 4]]
    if not known or not keys[tonumber(args[at + 2])] or at + 2 + args[at] > last then
      return redis.error_reply('SAYSO malformed write ' .. tostring(command))
    end
    at = at + 3 + args[at]
  end

  local number
  at = first
  while at <= last do
    local count, command, key = tonumber(args[at]), args[at + 1], keys[tonumber(args[at + 2])]
    local other = conditional[command]
    if command == 'RPUSH COPY' then
      local entry = {args[at + 3] .. values[args[at + 4]]}
      if not (joined and joined.add(command, key, entry, 1, 1)) then
        redis.call('RPUSH', key, entry[1])
      end
    elseif command == 'COMMITTED' then
      number = redis.call('HINCRBY', key, args[at + 3], 1)
    elseif command == 'COUNT' then
      add(key, unpack(args, at + 3, at + 6))
    elseif joined and joined.add(command, key, args, at + 3, at + 2 + count, other and keys[tonumber(args[at + 3])]) then
      -- written with others
    elseif not other then
      redis.call(command, key, unpack(args, at + 3, at + 2 + count))
    elseif redis.call('EXISTS', keys[tonumber(args[at + 3])]) == other[2] then
      redis.call(other[1], key, unpack(args, at + 4, at + 2 + count))
    end
    at = at + 3 + count
  end
  return {0, time[1], time[2], number}
end

return commit(KEYS, ARGV)
