-- Who did what.

local audit = {}

function audit.list(id, entry)
  redis.call('ZADD', key('entries', entry.target), entry.at, id)
  redis.call('ZADD', key('noted'), entry.at, id)
  redis.call('ZADD', key('entry_ids'), 0, id)
end

function audit.unlist(id)
  local target = redis.call('HGET', key('entry', id), 'target')
  if target then redis.call('ZREM', key('entries', target), id) end
  leave(id, 'noted', 'entry_ids')
end

function audit.has(id)
  return redis.call('EXISTS', key('entry', id)) == 1
end

-- Note what is being done; an entry that there is already stays.
function audit.add(entries)
  for _, entry in ipairs(entries or {}) do
    if not audit.has(entry.id) then
      entry.at = now
      redis.call('HSET', key('entry', entry.id), 'at', now, 'who', entry.who, 'verb', entry.verb,
                 'target', entry.target, 'detail', entry.detail)
      audit.list(entry.id, entry)
    end
  end
end

-- Note what is to be noted of something that has changed.
function audit.add_of(asked, id)
  if asked.noted then audit.add({asked.noted[id]}) end
end

-- Forget what was done before, oldest first; tell whether there is more of it.
function audit.prune(before, most)
  local old = up_to(key('noted'), past(before), most)
  for _, id in ipairs(old) do
    audit.unlist(id)
    redis.call('DEL', key('entry', id))
  end
  return #old == most
end

verb('entries', READS, function(asked)
  local name, first = asked.target and key('entries', asked.target) or key('noted'), 0
  if asked.before then
    local place = redis.call('ZREVRANK', name, asked.before)
    if not place then return end
    first = place + 1
  end
  return reply({}, collect(redis.call('ZRANGE', name, first, first + asked.limit - 1, 'REV'), function(id)
    local entry = read_hash(key('entry', id))
    return entry and pack_row({id, tonumber(entry.at), entry.who, entry.verb, entry.target, entry.detail}, 6)
  end))
end)
