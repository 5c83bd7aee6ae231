-- Locks that people take: in one hash, by name. What was released stays, for its fence.

local function read_lock(name)
  local packed = redis.call('HGET', key('locks'), name)
  return packed and cmsgpack.unpack(packed) or {fence = 0, deadline = 0}
end

local function write_lock(name, lock)
  redis.call('HSET', key('locks'), name, cmsgpack.pack(lock))
end

-- Return a lock that the token owns, before its deadline.
local function own_lock(asked)
  local lock = read_lock(asked.name)
  return lock.token == asked.token and lock.deadline > now and lock
end

verb('take_lock', WRITES, function(asked)
  local lock = read_lock(asked.name)
  if lock.deadline > now and lock.token ~= (asked.instead_of or '') then return reply({left = lock.deadline - now}) end
  local fence = math.max(lock.fence + 1, now)
  write_lock(asked.name, {token = asked.token, holder = asked.holder, fence = fence, since = now, deadline = now + asked.ttl})
  return reply({fence = fence, left = asked.ttl})
end)

verb('renew_lock', WRITES, function(asked)
  local lock = own_lock(asked)
  if lock then
    lock.deadline = now + asked.ttl
    write_lock(asked.name, lock)
  end
  return reply({done = lock and true})
end)

verb('release_lock', FREES, function(asked)
  local lock = own_lock(asked)
  if lock then
    lock.deadline = 0
    write_lock(asked.name, lock)
  end
  return reply({done = lock and true})
end)

-- The locks that are held, with their names; of one name only where it is asked for.
verb('locks', READS, function(asked)
  local found, names = {}, asked.name and {asked.name} or redis.call('HKEYS', key('locks'))
  table.sort(names)
  for _, name in ipairs(names) do
    local lock = read_lock(name)
    if lock.deadline > now then
      table.insert(found, pack_row({name, lock.token, lock.holder, lock.fence, lock.since, lock.deadline, lock.deadline - now}, 7))
    end
  end
  return reply({}, found)
end)

-- A fence that is ahead of the clock stays, since the next one would be lower.
verb('forget_locks', FREES, function()
  local count = 0
  for _, name in ipairs(redis.call('HKEYS', key('locks'))) do
    local lock = read_lock(name)
    if lock.deadline <= now and lock.fence < now then count = count + redis.call('HDEL', key('locks'), name) end
  end
  return reply({count = count})
end)
