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
    end
  end
end

function audit.has(id)
  return redis.call('EXISTS', key('entry', id)) == 1
end
