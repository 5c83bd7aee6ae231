-- Jobs, queues and workers, for people. Long lists are read in stretches, so that no other call waits for long.

-- Return the next names of a set, in their order or backwards, and the last of them if there may be more behind it.
local function stretch(name, asked)
  local found
  if asked.back then
    local from = asked.from and '[' .. asked.from or '-'
    found = redis.call('ZRANGE', name, '(' .. asked.after, from, 'BYLEX', 'REV', 'LIMIT', 0, asked.most)
  else
    found = redis.call('ZRANGE', name, '(' .. asked.after, '+', 'BYLEX', 'LIMIT', 0, asked.most)
  end
  return found, #found == asked.most and found[#found] or nil
end

local function flag(fact)
  return fact and 1 or 0
end

-- Whether a job is asked for.
local function wanted(job, asked)
  for name, value in pairs(asked.same) do
    if job[name] ~= value then return false end
  end
  if asked.scheduled ~= nil and asked.scheduled ~= (job.schedule ~= nil) then return false end
  if asked.since and (job.created_at or 0) < asked.since then return false end
  if asked.til and (job.created_at or 0) >= asked.til then return false end
  if asked.tag and not (job.tags and string.find(job.tags, asked.tag, 1, true)) then return false end
  return not asked.standings or asked.standings[joined(job.state or '', flag((job.due_at or 0) <= now), flag(job.started_at))]
end

-- Return the jobs that workers have, which are few, in the order and within the bounds that are asked for.
local function running(asked)
  local ids = {}
  for _, worker in ipairs(members('holders')) do
    for _, id in ipairs(rows.held(worker)) do
      if id < asked.after and (not asked.from or id >= asked.from) then ids[#ids + 1] = id end
    end
  end
  table.sort(ids, function(one, other) return one > other end)
  return ids
end

local DECISIVE = {'created_at', 'due_at', 'started_at'}

verb('find', READS, function(asked)
  local found = {}
  local ids, last
  if asked.index == 'held' then ids = running(asked) else ids, last = stretch(key(asked.index, asked.part), asked) end
  for _, id in ipairs(ids) do
    local job = rows.glance(id, DECISIVE)
    if job and wanted(job, asked) then found[#found + 1] = rows.pack_job(id) end
    if #found == asked.limit then break end
  end
  return reply({last = last}, found)
end)

-- The jobs that fall due first in each line and at the gates, with their due times, whatever their order.
verb('upcoming', READS, function(asked)
  local found = {}
  local function gather(name)
    local some = redis.call('ZRANGE', name, 0, asked.limit - 1, 'WITHSCORES')
    for place = 1, #some, 2 do found[#found + 1] = pack_row({tonumber(some[place + 1]), some[place]}, 2) end
  end
  gather(key('gated'))
  for _, line in ipairs(members('lines')) do gather(key('claim', line)) end
  return reply({}, found)
end)

local TALLIED = {'due_at', 'started_at'}

-- Count jobs that are alike: of one queue and state, due or not, started or not.
local function tally(ids)
  local counts, packed = {}, {}
  for _, id in ipairs(ids) do
    local job = rows.glance(id, TALLIED)
    if job and job.queue and STATES[job.state] then
      local kind = joined(job.state, flag((job.due_at or 0) <= now), flag(job.started_at), job.queue)
      counts[kind] = (counts[kind] or 0) + 1
    end
  end
  for kind, count in pairs(counts) do
    local state, due, started, queue = string.match(kind, '^(.-)|(%d)|(%d)|(.*)$')
    packed[#packed + 1] = pack_row({queue, state, count, due == '1', started == '1'}, 5)
  end
  return packed
end

verb('tally', READS, function(asked)
  local ids, last = stretch(key('jobs'), asked)
  return reply({last = last}, tally(ids))
end)

verb('tally_gated', READS, function(asked)
  local waiting = redis.call('ZCARD', key('gated'))
  return reply({waiting = waiting}, tally(redis.call('ZRANGE', key('gated'), 0, asked.most - 1)))
end)

verb('tally_running', READS, function()
  local ids = {}
  for _, worker in ipairs(members('holders')) do
    for _, id in ipairs(rows.held(worker)) do ids[#ids + 1] = id end
  end
  return reply({}, tally(ids))
end)

-- Count what waits in each line, due and not.
verb('tally_waiting', READS, function()
  local found = {}
  for _, line in ipairs(members('lines')) do
    local all, due = redis.call('ZCARD', key('claim', line)), redis.call('ZCOUNT', key('claim', line), '-inf', now)
    found[#found + 1] = pack_row({string.match(line, '^(.-)|'), due, all - due}, 3)
  end
  return reply({}, found)
end)

-- Count the due jobs of each queue and task; of those at gates, the first ones.
verb('due_jobs', READS, function(asked)
  local counts = {}
  local function count(queue, task, jobs)
    local kind = joined(queue, task)
    counts[kind] = (counts[kind] or 0) + jobs
  end
  for _, line in ipairs(members('lines')) do
    local queue, _, task = split(line)
    local due = redis.call('ZCOUNT', key('claim', line), '-inf', moment)
    if due > 0 then count(queue, task, due) end
  end
  for _, id in ipairs(up_to(key('gated'), moment, asked.most)) do
    local job = rows.glance(id, NONE)
    if job and job.queue then count(job.queue, job.task, 1) end
  end
  local found = {}
  for kind, jobs in pairs(counts) do
    local queue, task = string.match(kind, '^(.-)|(.*)$')
    found[#found + 1] = pack_row({queue, task, jobs}, 3)
  end
  return reply({}, found)
end)

verb('queues', READS, function()
  return reply({}, collect(members('queues'), function(name)
    local set = queues.read(name)
    return pack_row({name, set.paused_at, set.paused_reason, set.most, set.rate_count, set.rate_period}, 6)
  end))
end)

verb('workers', READS, function()
  return reply({}, collect(members('workers'), function(id)
    return cmsgpack.pack(read_hash(key('worker', id)) or {})
  end))
end)
