#!lua flags=no-writes
--[[ Search texts of open items, as `texts.py` writes them.

KEYS  the hashes of texts, the first of which is read from a cursor on.
ARGV  the cursor; about how many texts to read; the most items to return; the deadline, ms, and the member after which
      to begin (the member empty: with that deadline); the latest deadline, ms, or inf; then five for each probe: its
      kind, and a name, an operator and a number, or empty ones, and the hashes of the name, see `_list_groups`.

Returns how many hashes were read to their end; the cursor of the next one; the number of items that fit, and of those
whose record decides; then member, deadline, member, deadline and so on.
]]

local cursor, budget, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local from, after, to = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])

local compare = {
  ['>'] = function(one, other) return one > other end,
  ['>='] = function(one, other) return one >= other end,
  ['<'] = function(one, other) return one < other end,
  ['<='] = function(one, other) return one <= other end,
  ['='] = function(one, other) return one == other end,
}

-- Return whether a number fits, and whether only the record can say so: a double tells 15 digits apart.
local function fit(value, probe)
  local text = value:byte() == 34 and value:gsub('^"(.*)"$', '%1') or value
  local number = tonumber(text)
  if not number then
    return text:find('[_\128-\255]'), true
  elseif (probe.long or #text > 15) and math.abs(number - probe.number) <= math.abs(probe.number) * 1e-12 then
    return true, true
  end
  return compare[probe.operator](number, probe.number), false
end

local kinds = {}

function kinds.text(value, start, probe)
  return value:find(probe.name, start, true), false
end

function kinds.number(value, start, probe)
  local maybe, first, last = false, value:find(probe.ending, start, true)
  while first do
    local before = value:byte(first - 1)
    if before == 30 or before == 46 then
      local fitting, open = fit(value:sub(last + 1, (value:find('\30', last + 1, true) or 0) - 1), probe)
      if fitting and not open then
        return true, false
      end
      maybe = maybe or fitting
    end
    first, last = value:find(probe.ending, last + 1, true)
  end
  return maybe, true
end

-- Return whether a text has a mark, and whether only the record can say so: that of an earlier version, or of much text.
local function check(value, start, marks, mark)
  local checked = marks:find('c', 1, true) ~= nil
  local fitting = marks:find(mark) or not checked and value:find('[%z\1-\8\11-\29\127-\255]', start)
  return fitting, not checked, checked
end

function kinds.lookalike(value, start, _, marks)
  return check(value, start, marks, '[lr]')
end

function kinds.hidden(value, start, _, marks)
  return check(value, start, marks, 'h')
end

local probes = {}
for at = 7, #ARGV, 5 do
  local groups = {}
  for group in ARGV[at + 4]:gmatch('%d+') do
    groups[#groups + 1] = tonumber(group)
  end
  probes[#probes + 1] = {
    fits = kinds[ARGV[at]], name = ARGV[at + 1], ending = ARGV[at + 1] .. '\31', operator = ARGV[at + 2],
    number = tonumber(ARGV[at + 3]), long = #ARGV[at + 3] > 15, groups = groups,
  }
end

-- Return whether what has no room in a text may have what is sought; an empty filter does not say.
local function may_follow(filter, probe)
  for _, group in ipairs(filter == '' and {} or probe.groups) do
    local bit = group % (6 * #filter)
    local sextet = filter:byte(math.floor(bit / 6) + 1) - 48
    if math.floor(sextet / 2 ^ (bit % 6)) % 2 == 0 then
      return false
    end
  end
  return true
end

-- Return whether the text that starts there fits, and whether only its record can say so. It is not copied.
local function fits(value, start, marks)
  local uncertain, own, rest = false, marks:match('^([^+]*)%+(.*)$')
  for _, probe in ipairs(probes) do
    local fitting, open, decided = probe.fits(value, start, probe, own or marks)
    if not fitting and (decided or not (rest and may_follow(rest, probe))) then
      return false
    end
    uncertain = uncertain or open or not fitting
  end
  return true, uncertain
end

local read, certain, uncertain, passed, hits = 0, 0, 0, 0, {}
while passed < #KEYS and read < budget do
  local page = redis.call('HSCAN', KEYS[passed + 1], cursor, 'COUNT', budget)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    read = read + 1
    local member, value = page[2][i], page[2][i + 1]
    local deadline, marks, start = value:match('^(%d+)\31([^\31]*)\31()')
    local at = tonumber(deadline)
    if at <= to then
      local fitting, open = fits(value, start, marks)
      if fitting then
        certain, uncertain = certain + (open and 0 or 1), uncertain + (open and 1 or 0)
        if at > from or at == from and member > after then
          hits[#hits + 1] = {member, deadline, at}
        end
      end
    end
  end
  if cursor == '0' then
    passed = passed + 1
  end
end

table.sort(hits, function(one, other)
  return one[3] < other[3] or one[3] == other[3] and one[1] < other[1]
end)
local answer = {passed, cursor, certain, uncertain}
for i = 1, math.min(#hits, most) do
  answer[#answer + 1] = hits[i][1]
  answer[#answer + 1] = hits[i][2]
end
return answer
