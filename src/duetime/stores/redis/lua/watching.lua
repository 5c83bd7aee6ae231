-- What is read and written while someone watches.

local OUTLINE = {
  'id', 'task', 'queue', 'state', 'schedule', 'due_at', 'created_at', 'started_at', 'finished_at', 'worker',
}
local DATES = {'due_at', 'created_at', 'started_at', 'finished_at', 'worker'}

verb('glance', READS, function(asked)
  local seen = set_of(asked.ids)
  for _, id in ipairs(redis.call('ZRANGE', key('jobs'), '+', '-', 'BYLEX', 'REV', 'LIMIT', 0, asked.newest)) do
    if not seen[id] then seen[id], asked.ids[#asked.ids + 1] = true, id end
  end
  return reply({}, collect(asked.ids, function(id)
    local job = rows.glance(id, DATES)
    return job and rows.sound(job) and rows.packed(job, OUTLINE)
  end))
end)

local WORKER = {'name', 'state', 'lease_until', 'paused_at', 'journal', 'watched_until'}

-- What workers have noted: those that live, and others that are asked for.
verb('watched', READS, function(asked)
  local ids, seen = members('leases'), {}
  for _, id in ipairs(ids) do seen[id] = true end
  for _, id in ipairs(asked.known) do
    if not seen[id] then ids[#ids + 1] = id end
  end
  return reply({}, collect(ids, function(id)
    local name, state, lease, paused, journal, watched = unpack(redis.call('HMGET', key('worker', id), unpack(WORKER)))
    if not state then return nil end
    local lives = state == 'alive'
    local shown = lives and tonumber(lease or 0) < now and 'dead' or state
    local unaware = lives and tonumber(watched or 0) < now + asked.lease / 2
    return pack_row({id, name or nil, shown, paused and true or false, journal or nil, unaware}, 6)
  end))
end)

verb('watch', FREES, function(asked)
  for _, id in ipairs(asked.workers) do
    if workers.alive(id) then redis.call('HSET', key('worker', id), 'watched_until', now + asked.lease) end
  end
end)

verb('write_journal', WRITES, function(asked)
  if redis.call('EXISTS', key('worker', asked.worker)) == 1 then
    redis.call('HSET', key('worker', asked.worker), 'journal', asked.journal)
  end
end)
