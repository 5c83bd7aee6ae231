-- What runs came to.

local settling, reports = {}, {}

-- Return a job if a claim on it is the last one, whether it still holds or was settled.
function settling.claimed(token)
  local job = rows.read(token.id)
  return job and job.fence == token.fence and job.claim_id == token.claim_id and job or nil
end

-- Return the state of a job, without the rest of it, if a claim on it is the last one.
function settling.standing(token)
  local job = rows.glance(token.id, NONE)
  return job and job.fence == token.fence and job.claim_id == token.claim_id and job.state or nil
end

-- Return a job if a claim on it holds.
function settling.held(token)
  local job = settling.claimed(token)
  return job and job.state == 'running' and job or nil
end

local ATTEMPT = {
  'id', 'fence', 'worker', 'due_at', 'started_at', 'ended_at', 'outcome', 'error', 'traceback', 'error_type', 'fingerprint',
}

-- Keep a try that ended without ending its job.
local function keep_attempt(job, change)
  local values = {
    job.id, change.fence, change.worker or job.worker or nil, job.due_at, change.started_at, change.ended_at or now,
    change.attempt, change.error, change.traceback, change.error_type, change.fingerprint,
  }
  redis.call('HSETNX', key('attempts', job.id), change.fence, pack_row(values, #ATTEMPT))
end

-- Forget tries of long ago that came to nothing but a later due time, and what they logged.
local function trim(id, through)
  for fence, attempt in pairs(read_hash(key('attempts', id)) or NONE) do
    if tonumber(fence) <= through and cmsgpack.unpack(attempt)[7] == 'snoozed' then
      redis.call('HDEL', key('attempts', id), fence)
    end
  end
  for _, name in ipairs(redis.call('HKEYS', key('logs', id))) do
    if tonumber(string.match(name, '^%d+')) <= through then redis.call('HDEL', key('logs', id), name) end
  end
end

-- Whether a run that ends so cancels its job: a requested cancellation beats going back to pending. It is decided here,
-- since the request may come until the moment of the write.
local function ends_cancelled(job, change)
  return job.cancel_requested_at and (change.state == 'pending' or change.state == 'cancelled')
end

-- Write what a run came to.
local function write_down(job, change)
  local cancelled = ends_cancelled(job, change)
  local state = cancelled and 'cancelled' or change.state
  local back = state == 'pending'
  local written = {
    state = state,
    started_at = not back and change.started_at or false,
    finished_at = change.state == 'pending' and (cancelled and now) or change.finished_at or false,
    reason = cancelled and job.cancel_reason or change.reason or false,
    worker = not back and (change.worker or job.worker),
    due_at = change.due_at or job.due_at,
    failures = change.failures, crashes = change.crashes, blames = change.blames,
    result = change.result or false, result_error = change.result_error or false,
    error = change.error or false, traceback = change.traceback or false,
    error_type = change.error_type or false, fingerprint = change.fingerprint or false,
  }
  if back then written.progress, written.progress_note = false, false end
  rows.change(job.id, written, job)
end

-- Write all that belongs to what a run came to, if its claim holds.
function settling.settle(change)
  local job = settling.claimed(change)
  if not job then return nil end
  if job.state ~= 'running' then return 'accepted' end
  -- What is called back was made for a job whose cancellation was requested, or was not.
  if change.requested ~= nil and change.requested ~= (job.cancel_requested_at and true or false) then return 'moved' end
  if change.progress then
    reports.progress(change.progress)
    job = settling.claimed(change)
  end
  -- First what may fail: if the call is repeated once the end is written, it does nothing more.
  jobs.store_all(change.new_jobs)
  write_down(job, change)
  if change.attempt then keep_attempt(job, change) end
  if change.trim then trim(job.id, change.trim) end
  reports.log(change.logs)
  return 'accepted'
end

-- Write that a run went well of which there is nothing else to tell.
local function succeed(id, fence, claim_id, started_at, finished_at, result)
  return rows.end_well(id, fence, claim_id, started_at, finished_at, result) or settling.settle({
    id = id, fence = fence, claim_id = claim_id, state = 'succeeded', started_at = tonumber(started_at),
    finished_at = tonumber(finished_at), result = result or nil,
  })
end

-- What is told of a run that went well; all of them come in one list, since a table for each takes as long as the rest.
local SUCCESS = 6

-- Answer with the places in the lists of those that are accepted, of those to be decided again, and of runs that went
-- well and are not accepted.
verb('settle', FREES, function(asked)
  local answers, successes = {accepted = {}, moved = {}, refused = {}}, asked.successes
  for place, change in ipairs(asked.changes) do
    local answer = settling.settle(change)
    if answer then table.insert(answers[answer], place) end
  end
  for first = 1, #successes, SUCCESS do
    if not succeed(unpack(successes, first, first + SUCCESS - 1)) then
      table.insert(answers.refused, (first - 1) / SUCCESS + 1)
    end
  end
  return reply(answers)
end)

verb('mark_started', FREES, function(asked)
  for _, token in ipairs(asked.tokens) do
    local job = settling.held(token)
    if job and rows.sound(job) then rows.change(token.id, {started_at = asked.started_at}, job) end
  end
end)
