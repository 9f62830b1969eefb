-- The one step at which the events of a room get their order: settles the batch that waits for its
-- journal rows, then appends the next one, if the caller knows everything that was appended before.
--
-- KEYS[1]  head of the room, a hash: g (generation) and seq (the last settled event); while a batch
--          waits: id, from, to, rows, at (ms), refused; and for every caller in the line w:<caller>,
--          the time it asked last
-- KEYS[2]  settled batches, a stream: entry <g>-<first seq> with the field rows
-- KEYS[3]  the line of callers that met a waiting batch, a sorted set by the time of their asking
-- ARGV[1]  generation     ARGV[2]  seq of the caller's replica; all of it is in the journal
-- ARGV[3]  caller         ARGV[4]  what to do with the waiting batch: keep, drop, refuse or nothing
-- ARGV[5]  its id         ARGV[6]  id of the batch to append, empty for none
-- ARGV[7]  its last seq   ARGV[8]  its rows
-- ARGV[9]  age in ms at which a waiting batch is an orphan
-- ARGV[10] stream entries below this seq may go: journaled and in a snapshot
-- ARGV[11] channel that tells of settled batches   ARGV[12] room id
--
-- Result   {word, seq, ...}: appended | current id | behind {first, rows}... | lost | fresh | busy id |
--          orphan id from to rows refused | newer
--
-- Atomic because two callers must never both append after the same event, and because a batch must
-- not be settled twice.
local head, stream, line = KEYS[1], KEYS[2], KEYS[3]
local g, base, me = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function clear()
  redis.call('HDEL', head, 'id', 'from', 'to', 'rows', 'at', 'refused')
end

local function publish(first, rows)
  redis.call('PUBLISH', ARGV[11], table.concat({ ARGV[12], g, first, rows }, '\n'))
end

local known = redis.call('HMGET', head, 'g', 'seq')
if known[1] and tonumber(known[1]) > tonumber(g) then
  return { 'newer', known[1] }
end
if not known[1] or tonumber(known[1]) < tonumber(g) then
  redis.call('DEL', head, stream, line)
  redis.call('HSET', head, 'g', g, 'seq', base)
  return { 'fresh', base }
end
local seq = tonumber(known[2])

local waiting = redis.call('HGET', head, 'id')
if waiting and waiting == ARGV[5] then
  if ARGV[4] == 'keep' then
    local batch = redis.call('HMGET', head, 'from', 'to', 'rows')
    redis.pcall('XADD', stream, g .. '-' .. batch[1], 'rows', batch[3])
    seq = tonumber(batch[2])
    redis.call('HSET', head, 'seq', seq)
    clear()
    publish(batch[1], batch[3])
    if tonumber(ARGV[10]) > 0 then
      redis.call('XTRIM', stream, 'MINID', '~', g .. '-' .. ARGV[10])
    end
    waiting = false
  elseif ARGV[4] == 'drop' then
    clear()
    waiting = false
  elseif ARGV[4] == 'refuse' then
    redis.call('HSET', head, 'refused', 1)
  end
end
if waiting and tonumber(redis.call('HGET', head, 'from')) <= base then
  clear()
  waiting = false
end
if base > seq and not waiting then
  -- The journal is ahead of this store: what the caller read there counts.
  seq = base
  redis.call('HSET', head, 'seq', seq)
  publish(seq, '')
end
if base < seq then
  local entries = redis.call('XRANGE', stream, g .. '-' .. (base + 1), '+', 'COUNT', 64)
  if #entries == 0 or entries[1][1] ~= g .. '-' .. string.format('%d', base + 1) then
    return { 'lost', seq }
  end
  local reply = { 'behind', seq }
  for _, entry in ipairs(entries) do
    reply[#reply + 1] = entry[1]
    reply[#reply + 1] = entry[2][2]
  end
  return reply
end
if waiting then
  local batch = redis.call('HMGET', head, 'at', 'from', 'to', 'rows', 'refused')
  if now - tonumber(batch[1]) >= tonumber(ARGV[9]) then
    return { 'orphan', seq, waiting, batch[2], batch[3], batch[4], batch[5] or '' }
  end
end
if ARGV[6] == '' then
  return { 'current', seq, waiting or '' }
end

-- Callers that found a batch waiting go first, in the order they came, while they keep asking.
local function is_my_turn()
  while true do
    local first = redis.call('ZRANGE', line, 0, 0)[1]
    if not first or first == me then return true end
    if now - tonumber(redis.call('HGET', head, 'w:' .. first) or '0') <= 100 then return false end
    redis.call('ZREM', line, first)
    redis.call('HDEL', head, 'w:' .. first)
  end
end

if waiting or not is_my_turn() then
  redis.call('ZADD', line, 'NX', now, me)
  redis.call('HSET', head, 'w:' .. me, now)
  return { 'busy', seq, waiting or '' }
end
redis.call('ZREM', line, me)
redis.call('HDEL', head, 'w:' .. me)
redis.call('HSET', head, 'id', ARGV[6], 'from', base + 1, 'to', ARGV[7], 'rows', ARGV[8], 'at', now)
return { 'appended', seq }
