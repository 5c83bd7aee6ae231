-- What goes when its time is over.

local PRUNABLE = {
  'id', 'state', 'finished_at', 'result_ttl', 'failure_ttl', 'keep_key', 'key_until', 'schedule', 'occurrence', 'has_more',
}

-- Whether the result or the error of a job is there.
local function has_more(id)
  for _, name in ipairs({'result', 'error', 'traceback'}) do
    if redis.pcall('HEXISTS', key('job', id), name) == 1 then return true end
  end
  return false
end

-- Look at a stretch of jobs, oldest first: those that have ended, with what decides how long they stay.
verb('prunable', READS, function(asked)
  local ids, last = stretch(key('jobs'), asked)
  return reply({last = last}, collect(ids, function(id)
    local job = rows.glance(id, PRUNABLE)
    if not (job and job.finished_at and STATES[job.state]) then return nil end
    if redis.pcall('HGET', key('job', id), 'key_held') == '0' then job.keep_key, job.key_until = false, false end
    job.has_more = has_more(id)
    return rows.packed(job, PRUNABLE)
  end))
end)

-- Return the earliest of the latest ended occurrences of a schedule; nothing where there are fewer.
local function first_latest(schedule, keep)
  local live = key('live', schedule)
  local latest = redis.call('ZRANGE', key('occurrences', schedule), 0, keep + redis.call('ZCARD', live) - 1, 'REV',
                            'WITHSCORES')
  for place = 1, #latest, 2 do
    if not redis.call('ZSCORE', live, latest[place]) then keep = keep - 1 end
    if keep == 0 then return tonumber(latest[place + 1]) end
  end
end

verb('first_latest', READS, function(asked)
  return reply({}, collect(asked.schedules, function(schedule)
    return pack_row({schedule, first_latest(schedule, asked.keep)}, 2)
  end))
end)

local function forget_attempts(id)
  for fence, packed in pairs(read_hash(key('attempts', id)) or NONE) do
    local attempt = cmsgpack.unpack(packed)
    for place, name in ipairs(ATTEMPT) do
      if name == 'error' or name == 'traceback' then attempt[place] = nil end
    end
    redis.call('HSET', key('attempts', id), fence, pack_row(attempt, #ATTEMPT))
  end
end

-- Drop the result and the error of a job, and the errors of its earlier tries where it failed.
local function forget(id, note)
  local job = rows.read(id)
  if not job or not job.finished_at then return end
  rows.change(id, {result = false, error = false, traceback = false, result_error = note}, job)
  if job.state == 'failed' then forget_attempts(id) end
end

-- Remove jobs that have ended and empty others; answer how many went.
verb('prune', FREES, function(asked)
  local gone = 0
  for _, outlived in ipairs(asked.outlived) do rows.with(outlived.id, 'jobs', '', forget, outlived.note) end
  for _, id in ipairs(asked.gone) do
    if redis.pcall('HEXISTS', key('job', id), 'finished_at') == 1 then
      if rows.with(id, 'jobs', '', rows.remove) then gone = gone + 1 end
    end
  end
  return reply({gone = gone})
end)

-- Forget workers that have been gone for long and hold nothing; tell whether there may be more of them.
local function prune_workers(before, most)
  local gone = 0
  for _, id in ipairs(redis.call('ZRANGE', key('workers'), '-inf', past(before), 'BYSCORE')) do
    local over = not workers.alive(id) and tonumber(redis.call('HGET', key('worker', id), 'lease_until') or 0) < before
    if over and redis.call('EXISTS', key('held', id)) == 0 then
      redis.call('DEL', key('worker', id))
      leave(id, 'workers', 'worker_ids')
      gone = gone + 1
    end
    if gone == most then return true end
  end
  return false
end

-- Forget commands that were answered long ago.
local function prune_commands(before, most)
  local old = up_to(key('answered'), past(before), most)
  for _, id in ipairs(old) do
    local worker = redis.call('HGET', key('command', id), 'worker')
    if worker then redis.call('ZREM', key('commands', worker), id) end
    redis.call('DEL', key('command', id))
    leave(id, 'answered')
  end
  return #old == most
end

verb('prune_rest', FREES, function(asked)
  local workers_left = prune_workers(asked.before, asked.most)
  local commands_left = prune_commands(asked.before, asked.most)
  local entries_left = audit.prune(asked.before, asked.most)
  workers.prune_tasks(asked.before)
  access.prune(asked.before)
  return reply({more = workers_left or commands_left or entries_left})
end)
