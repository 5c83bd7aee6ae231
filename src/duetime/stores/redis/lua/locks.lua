-- Locks that people take: in one hash, by name. What was released stays, for its fence.

-- Return the token, holder, fence, since and deadline of a lock.
local function read_lock(name)
  local packed = redis.call('HGET', key('locks'), name)
  if not packed then return nil, nil, 0, 0, 0 end
  return cmsgpack.unpack(packed)
end

local function write_lock(name, ...)
  redis.call('HSET', key('locks'), name, cmsgpack.pack(...))
end

verb('take_lock', WRITES, function(asked)
  local token, _, fence, _, deadline = read_lock(asked.name)
  if deadline > now and token ~= (asked.instead_of or '') then return reply({left = deadline - now}) end
  fence = math.max(fence + 1, now)
  write_lock(asked.name, asked.token, asked.holder, fence, now, now + asked.ttl)
  return reply({fence = fence, left = asked.ttl})
end)

-- Change the deadline of a lock that the token owns, before the deadline.
local function change(asked, till)
  local token, holder, fence, since, deadline = read_lock(asked.name)
  local own = token == asked.token and deadline > now
  if own then write_lock(asked.name, token, holder, fence, since, till) end
  return reply({done = own})
end

verb('renew_lock', WRITES, function(asked) return change(asked, now + asked.ttl) end)

verb('release_lock', FREES, function(asked) return change(asked, 0) end)

-- The locks that are held, with their names; of one name only where it is asked for.
verb('locks', READS, function(asked)
  local found, names = {}, asked.name and {asked.name} or redis.call('HKEYS', key('locks'))
  table.sort(names)
  for _, name in ipairs(names) do
    local token, holder, fence, since, deadline = read_lock(name)
    if deadline > now then
      table.insert(found, pack_row({name, token, holder, fence, since, deadline, deadline - now}, 7))
    end
  end
  return reply({}, found)
end)

-- A fence that is ahead of the clock stays, since the next one would be lower.
verb('forget_locks', FREES, function()
  local count = 0
  for _, name in ipairs(redis.call('HKEYS', key('locks'))) do
    local _, _, fence, _, deadline = read_lock(name)
    if deadline <= now and fence < now then count = count + redis.call('HDEL', key('locks'), name) end
  end
  return reply({count = count})
end)
