-- What people do to jobs.

verb('get', READS, function(asked)
  return reply({}, rows.pack_all(asked.ids, JOB))
end)

-- A job, why its end was asked for, and its last claim: what a decision about it needs.
local function pack_standing(id)
  local row = rows.pack(id, JOB)
  if not row then return nil end
  local reason, claim_id = unpack(redis.pcall('HMGET', key('job', id), 'cancel_reason', 'claim_id'))
  return '\147' .. row .. cmsgpack.pack(reason or nil, claim_id or nil)
end

verb('standing', READS, function(asked)
  local found = {}
  for _, id in ipairs(asked.ids) do found[#found + 1] = pack_standing(id) end
  return reply({}, found)
end)


-- Cancel a job that waits, with the job that it calls back; flag one that a worker has.
local function cancel(id, asked)
  local job = rows.read(id)
  if not job then return 'unknown' end
  if job.state ~= 'pending' and (job.state ~= 'running' or asked.waiting_only) then return 'finished' end
  local called = asked.called and asked.called[id]
  if job.state == 'pending' and job.callbacks and not called then return 'undecided' end
  local change = {
    cancel_requested_at = job.cancel_requested_at or now, cancel_reason = job.cancel_reason or asked.reason,
  }
  if job.state == 'running' then
    rows.change(id, change, job)
    hint('worker', job.worker or '')
    return 'requested', job.worker
  end
  change.state, change.finished_at, change.reason = 'cancelled', now, asked.reason
  rows.change(id, change, job)
  jobs.store_all(called)
  return 'cancelled'
end

-- Answer for each job; those that call others back are told of, and cancelled when it is known whom.
verb('cancel', FREES, function(asked)
  local answers, told, undecided = {}, {}, {}
  for place, id in ipairs(asked.ids) do
    local answer, worker = cancel(id, asked)
    answers[place] = answer
    if worker then told[#told + 1] = worker end
    if answer == 'undecided' then undecided[#undecided + 1] = pack_standing(id) end
  end
  return reply({answers = answers, workers = told}, undecided)
end)

-- Put off what nobody has claimed.
verb('snooze', WRITES, function(asked)
  local answers = {}
  for place, id in ipairs(asked.ids) do
    local job = rows.read(id)
    local answer = job and (job.state == 'running' and 'running' or 'finished') or 'unknown'
    if job and job.state == 'pending' then
      rows.change(id, {due_at = math.min(math.max(job.due_at, now) + asked.delay, asked.latest)}, job)
      answer = 'snoozed'
    end
    answers[place] = answer
  end
  return reply({answers = answers})
end)

-- Take a claim away under a new fence, and settle it as given back, if all is as it was when that was decided.
local function release(change, force)
  local job = settling.held({id = change.id, fence = change.old_fence, claim_id = change.old_claim_id})
  if not job or (job.started_at and not force) then return false end
  if (job.cancel_requested_at and true or false) ~= change.requested then return false end
  rows.change(change.id, {fence = change.fence, claim_id = change.claim_id}, job)
  hint('worker', job.worker or '')
  settling.settle(change)
  return true
end

-- Answer with the places in the list of those that are to be decided again.
verb('release', FREES, function(asked)
  local moved = {}
  for place, change in ipairs(asked.changes) do
    if not release(change, asked.force) then moved[#moved + 1] = place end
  end
  return reply({moved = moved})
end)

-- Return jobs of a queue that nobody has claimed and that were stored before, most urgent first.
verb('purgeable', READS, function(asked)
  local found = {}
  local function look(name)
    local offset = 0
    repeat
      local ids = redis.call('ZRANGE', name, offset, offset + asked.limit - 1)
      for _, id in ipairs(ids) do
        local queue, created_at = unpack(redis.pcall('HMGET', key('job', id), 'queue', 'created_at'))
        if queue == asked.queue and tonumber(created_at) <= asked.before then found[#found + 1] = id end
      end
      offset = offset + asked.limit
    until #found >= asked.limit or #ids < asked.limit
  end
  for _, line in ipairs(within('lines', asked.queue)) do
    if #found < asked.limit then look(key('claim', line)) end
  end
  if #found < asked.limit then look(key('gated')) end
  return reply({ids = {unpack(found, 1, math.min(#found, asked.limit, CHUNK))}})
end)
