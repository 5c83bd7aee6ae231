-- What people do to jobs.

verb('get', READS, function(asked)
  return reply({}, rows.pack_jobs(asked.ids))
end)

-- A job, why its end was asked for, and its last claim: what a decision about it needs.
local STANDING = {}
for place = 1, #JOB do STANDING[place] = JOB[place] end
STANDING[#JOB + 1], STANDING[#JOB + 2] = 'cancel_reason', 'claim_id'

local function pack_standing(id)
  local job = rows.read_whole(id)
  return job and rows.packed(job, STANDING)
end

verb('standing', READS, function(asked)
  return reply({}, collect(asked.ids, pack_standing))
end)

-- Cancel a job that waits, with the job that it calls back; flag one that a worker has.
local function cancel(id, asked)
  local job = rows.read_whole(id)
  if not job then return 'unknown' end
  if job.state ~= 'pending' and (job.state ~= 'running' or asked.waiting_only) then return 'finished' end
  local called = asked.called and asked.called[id]
  if job.state == 'pending' and job.callbacks and not called then return 'undecided' end
  local change = {
    cancel_requested_at = job.cancel_requested_at or now, cancel_reason = job.cancel_reason or asked.reason,
  }
  audit.add_of(asked, id)
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

-- Remove jobs that no worker has.
verb('delete', FREES, function(asked)
  return reply({answers = collect(asked.ids, function(id)
    local job = rows.read_whole(id)
    if not job then return 'unknown' end
    if job.state == 'running' then return 'running' end
    rows.remove(id, job)
    audit.add_of(asked, id)
    return 'deleted'
  end)})
end)

-- Return when a job is due after a change.
local function edited_due_at(job, change, latest)
  if change.due_at or change.delay then return change.due_at or now + change.delay end
  return change.postpone and math.min(math.max(job.due_at, now) + change.postpone, latest) or job.due_at
end

local EXPECTED = {'fence', 'queue', 'priority', 'retries', 'timeout', 'expires_at', 'payload'}

-- Whether a job is as it is to be if it is to be changed.
local function as_expected(job, change)
  if change.if_due_at and job.due_at ~= change.if_due_at then return false end
  if not change.if_fence then return true end
  for _, name in ipairs(EXPECTED) do
    if job[name] ~= change['if_' .. name] then return false end
  end
  return true
end

-- Change a job that no worker has claimed.
local function edit(job, change, latest)
  local due_at = edited_due_at(job, change, latest)
  local changed = {due_at = due_at, expires_at = change.expires_at or change.expires and due_at + change.expires}
  for _, name in ipairs({'queue', 'priority', 'retries', 'timeout', 'payload'}) do changed[name] = change[name] end
  if change.payload then changed.gate = change.gate or false end
  rows.change(job.id, changed, job)
  return 'changed'
end

verb('edit', WRITES, function(asked)
  return reply({answers = collect(asked.ids, function(id)
    local job = rows.read_whole(id)
    if not job then return 'unknown' end
    if job.state ~= 'pending' then return job.state == 'running' and 'running' or 'finished' end
    if not as_expected(job, asked.change) then return asked.change.if_fence and 'different' or 'running' end
    audit.add_of(asked, id)
    return edit(job, asked.change, asked.latest)
  end)})
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
    if release(change, asked.force) then audit.add_of(asked, change.id) else moved[#moved + 1] = place end
  end
  return reply({moved = moved})
end)

-- Return the rank of what comes behind a member of a set by score, where that member may be gone by now.
local function rank_behind(name, after)
  local low = redis.call('ZCOUNT', name, '-inf', '(' .. after.score)
  local past_all = low + redis.call('ZCOUNT', name, after.score, after.score)
  while low < past_all do
    local middle = math.floor((low + past_all) / 2)
    if redis.call('ZRANGE', name, middle, middle)[1] <= after.id then low = middle + 1 else past_all = middle end
  end
  return low
end

-- Return the next of a set by score, from its beginning or behind one, each with its score.
local function onward(name, after, most)
  local first = after and rank_behind(name, after) or 0
  return redis.call('ZRANGE', name, first, first + most - 1, 'WITHSCORES')
end

-- Return the lists of unclaimed jobs: those of a queue, and the one of all queues; all lists, or those from one on.
local function waiting_lists(queue, from)
  local lists, line = {}, from and string.match(from, '^claim:(.*)$') or queue .. '|'
  if from ~= 'gated' then
    for place, name in ipairs(redis.call('ZRANGE', key('lines'), '[' .. line, '(' .. queue .. '}', 'BYLEX')) do
      lists[place] = 'claim:' .. name
    end
  end
  lists[#lists + 1] = 'gated'
  return lists
end

local PURGEABLE = {'created_at'}

-- Among some unclaimed jobs, find those of a queue that were stored before; tell where to look on.
verb('purgeable', READS, function(asked)
  local found, looked_at, after = {}, 0, asked.after
  for _, list in ipairs(waiting_lists(asked.queue, after.list)) do
    local some = onward(key(list), list == after.list and after, asked.most - looked_at)
    for place = 1, #some, 2 do
      local id, job = some[place], rows.glance(some[place], PURGEABLE)
      if job and job.queue == asked.queue and job.created_at and job.created_at <= asked.before then
        found[#found + 1] = id
      end
      looked_at = looked_at + 1
      if looked_at == asked.most or #found == asked.limit then
        return reply({ids = found, last = {list = list, score = some[place + 1], id = id}})
      end
    end
  end
  return reply({ids = found})
end)
