-- Who did what.

local audit = {}

-- Note what is being done; an entry that there is already stays.
function audit.add(entries)
  for _, entry in ipairs(entries or {}) do
    local name = key('entry', entry.id)
    if redis.call('EXISTS', name) == 0 then
      redis.call('HSET', name, 'at', now, 'who', entry.who, 'verb', entry.verb, 'target', entry.target,
                 'detail', entry.detail)
      redis.call('ZADD', key('entries', entry.target), now, entry.id)
      redis.call('ZADD', key('noted'), now, entry.id)
      redis.call('ZADD', key('entry_ids'), 0, entry.id)
    end
  end
end

function audit.has(id)
  return redis.call('EXISTS', key('entry', id)) == 1
end

-- Forget what was done before, oldest first; tell whether there is more of it.
function audit.prune(before, most)
  local old = redis.call('ZRANGE', key('noted'), '-inf', past(before), 'BYSCORE', 'LIMIT', 0, most)
  for _, id in ipairs(old) do
    local target = redis.call('HGET', key('entry', id), 'target')
    if target then redis.call('ZREM', key('entries', target), id) end
    redis.call('DEL', key('entry', id))
    redis.call('ZREM', key('noted'), id)
    redis.call('ZREM', key('entry_ids'), id)
  end
  return #old == most
end

local ENTRY = {'at', 'who', 'verb', 'target', 'detail'}

verb('entries', READS, function(asked)
  local name, first = key('entries', asked.target), 0
  if asked.before then
    local place = redis.call('ZREVRANK', name, asked.before)
    if not place then return reply({}) end
    first = place + 1
  end
  return reply({}, collect(redis.call('ZRANGE', name, first, first + asked.limit - 1, 'REV'), function(id)
    local at, who, did, target, detail = unpack(redis.call('HMGET', key('entry', id), unpack(ENTRY)))
    return at and pack_row({id, tonumber(at), who, did, target, detail}, 6)
  end))
end)
