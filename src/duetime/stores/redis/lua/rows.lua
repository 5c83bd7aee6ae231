-- The rows of jobs, and the indexes over them. Nothing but this file writes either, so that they cannot drift apart.

-- What is a number in a job.
local NUMBERS = {
  priority = true, due_at = true, created_at = true, started_at = true, finished_at = true, fence = true,
  failures = true, crashes = true, blames = true, retries = true, timeout = true, cancel_requested_at = true,
  occurrence = true, span_first = true, span_count = true, keep_key = true, key_until = true, expires_at = true,
  result_ttl = true, failure_ttl = true, progress = true, key_held = true,
}

-- What a missing column stands for, where that is not nothing.
local ABSENT = {
  __index = {fence = 0, failures = 0, crashes = 0, blames = 0, span_count = 1, key_held = 1, on_crash = 'retry'},
}

-- An empty row with room for most columns, since a table that grows takes as long as all the rest of reading a job.
local function blank()
  return setmetatable({
    id = nil, task = nil, payload = nil, queue = nil, priority = nil, state = nil, due_at = nil, created_at = nil,
    started_at = nil, finished_at = nil, worker = nil, fence = nil, claim_id = nil, failures = nil, result = nil,
    schedule = nil, occurrence = nil,
  }, ABSENT)
end

local STATES = {pending = true, running = true, succeeded = true, failed = true, cancelled = true, skipped = true}

local CLAIM = {
  'id', 'fence', 'claim_id', 'task', 'payload', 'queue', 'priority', 'due_at', 'claimed_at', 'failures', 'crashes',
  'blames', 'on_crash', 'retries', 'timeout', 'schedule', 'occurrence', 'cancel_requested_at', 'unique_key', 'tags',
  'parent', 'callbacks', 'expires_at', 'result_ttl', 'failure_ttl', 'gate',
}

local JOB = {
  'id', 'task', 'payload', 'queue', 'priority', 'state', 'due_at', 'created_at', 'started_at', 'finished_at', 'worker',
  'fence', 'failures', 'crashes', 'blames', 'on_crash', 'retries', 'timeout', 'result', 'result_error', 'error',
  'traceback', 'reason', 'cancel_requested_at', 'schedule', 'occurrence', 'span_first', 'span_count', 'unique_key',
  'tags', 'parent', 'callbacks', 'expires_at', 'result_ttl', 'failure_ttl', 'gate', 'progress', 'progress_note',
}

local function put_column(row, name, value)
  if NUMBERS[name] then row[name] = tonumber(value) else row[name] = value end
end

-- Read a job, by column; nothing in place of a job that there is not, or where somebody has put something else. All of
-- it: that takes a third of the time that it takes to ask for as many columns as the indexes go by.
function rows.read(id)
  local values = redis.pcall('HGETALL', key('job', id))
  if #values == 0 then return nil end
  local row = blank()
  for place = 1, #values, 2 do put_column(row, values[place], values[place + 1]) end
  return row
end

-- Read a few columns, where many jobs are looked at and their arguments are of no interest.
function rows.glance(id, columns)
  local values = redis.pcall('HMGET', key('job', id), 'id', unpack(columns))
  if not values[1] then return nil end
  local row = blank()
  for place, name in ipairs(columns) do put_column(row, name, values[place + 1] or nil) end
  return row
end

-- Pack what was read as a row of columns. The table is used again and again, to spare its growth.
local values = {}

function rows.packed(row, columns)
  for place = 1, #columns do values[place] = row[columns[place]] or nil end
  return pack_row(values, #columns)
end

-- Pack a job as a row of columns; nothing in place of one that there is not, or of whose state nobody can tell.
function rows.pack(id, columns)
  local row = rows.read(id)
  return row and STATES[row.state] and rows.packed(row, columns)
end

function rows.pack_all(ids, columns)
  local packed = {}
  for _, id in ipairs(ids) do packed[#packed + 1] = rows.pack(id, columns) end
  return packed
end

local LIVE = {pending = true, running = true}

-- As text, since it takes Redis longer to write a number down than to list it.
local ZERO = '0'

-- The indexes over jobs, each with what tells in which part of it a job is listed, if in any, and under which score.
local FOR_GOOD = {
  {'jobs', function() return '', ZERO end},
  {'history', function(job) return job.schedule, ZERO end},
}
local OF_ALL = {
  {'live', function(job) if LIVE[job.state] then return '', ZERO end end},
  {'claim', function(job)
    if job.state == 'pending' and not job.gate then
      return job.queue .. '|' .. job.priority .. '|' .. job.task, job.due_at
    end
  end},
  {'held', function(job) if job.state == 'running' then return job.worker or '', ZERO end end},
  {'busy', function(job) if job.state == 'running' then return job.queue, ZERO end end},
  {'unsuccessful', function(job) if not LIVE[job.state] and job.state ~= 'succeeded' then return '', ZERO end end},
}
local OF_GATED = {
  {'gated', function(job) if job.gate and job.state == 'pending' then return '', job.due_at end end},
  {'gate', function(job)
    if job.gate and job.state == 'pending' then
      return joined(job.task, job.gate, job.queue, job.priority), job.due_at
    end
  end},
  {'passed', function(job) if job.gate and job.state == 'running' then return job.gate, ZERO end end},
}
local OF_SCHEDULED = {
  {'live', function(job) if LIVE[job.state] then return job.schedule, job.occurrence or ZERO end end},
  {'running', function(job) if job.state == 'running' then return job.schedule, ZERO end end},
  {'occurrences', function(job) if job.occurrence then return job.schedule, job.occurrence end end},
  {'succeeded', function(job)
    if job.occurrence and job.state == 'succeeded' then return job.schedule, job.occurrence end
  end},
  {'failed', function(job)
    if job.occurrence and job.state == 'failed' then return job.schedule, job.occurrence end
  end},
}

-- Who lists the parts that an index has at present.
local REGISTRIES = {claim = 'lines', gate = 'places', held = 'holders'}

-- The name of the key that a job holds, if it does: while it lives, or past its end where it asked for that.
local function key_of(job)
  if not job.unique_key or job.key_held == 0 then return nil end
  if not (LIVE[job.state] or job.keep_key or job.key_until) then return nil end
  return joined(job.task, job.unique_key)
end

-- What is to change in the indexes: by index, part and job, its score, or `false` where it leaves.
local changes = {}

local function index(name, part, id, score)
  local parts = changes[name]
  if not parts then
    parts = {}
    changes[name] = parts
  end
  local jobs = parts[part]
  if not jobs then
    jobs = {}
    parts[part] = jobs
  end
  jobs[id] = score
end

local function list(name, part, jobs)
  local listed, added, removed = key(name, part ~= '' and part or nil), {}, {}
  for id, score in pairs(jobs) do
    if score then
      added[#added + 1] = score
      added[#added + 1] = id
    else
      removed[#removed + 1] = id
    end
  end
  in_chunks('ZADD', listed, added)
  in_chunks('ZREM', listed, removed)
  local registry = REGISTRIES[name]
  if registry and (#added > 0 or redis.call('EXISTS', listed) == 1) then
    redis.call('ZADD', key(registry), 0, part)
  elseif registry then
    redis.call('ZREM', key(registry), part)
  end
end

-- Write what is to change, in one stroke for each key: the end of every call, and before a call reads an index that it
-- may have changed itself. Most of the time that a call takes goes into the number of strokes. A key that somebody has
-- replaced by something else keeps no other from being written, and nothing is left for the next call.
function rows.flush()
  local due, failed = changes, nil
  changes = {}
  for name, parts in pairs(due) do
    for part, jobs in pairs(parts) do
      local done, why = pcall(list, name, part, jobs)
      if not done then failed = why end
    end
  end
  if failed then error(failed) end
end

-- Whether a job can be listed, which somebody may have edited.
function rows.sound(job)
  return STATES[job.state] and job.queue and job.task and job.priority and job.due_at
end

-- This comes before anything is written: what fails half way stays half done.
local function insist_on(job)
  if not (job and rows.sound(job)) then error({err = 'DUETIME somebody has edited or removed a job that is listed'}) end
end

-- Read a job that is there, and can be listed.
function rows.insist(id)
  local job = rows.read(id)
  insist_on(job)
  return job
end

local NONE = {}

local function move(indexes, id, before, after)
  for _, each in ipairs(indexes) do
    local name, place = each[1], each[2]
    local from, was, to, score
    if before ~= NONE then from, was = place(before) end
    if after ~= NONE then to, score = place(after) end
    if from and from ~= to then index(name, from, id, false) end
    if to and not (from == to and was == score) then index(name, to, id, score) end
  end
end

-- Bring the indexes from one state of a job to another; `NONE` before there was one, and when there is none any more.
local function reindex(id, before, after)
  move(OF_ALL, id, before, after)
  if before.gate or after.gate then move(OF_GATED, id, before, after) end
  if before.schedule or after.schedule then move(OF_SCHEDULED, id, before, after) end
  local had, has = key_of(before), key_of(after)
  if had == has then return end
  if had and redis.call('HGET', key('keys'), had) == id then redis.call('HDEL', key('keys'), had) end
  if has then redis.call('HSET', key('keys'), has, id) end
end

-- Used again and again, to spare their growth.
local set, dropped = {}, {}

-- Write the fields of a hash that differ from what they were; `false` makes one nothing.
local function write(name, changed, before)
  local sets, drops = 0, 0
  for field, value in pairs(changed) do
    if value ~= (before[field] or false) then
      if value == false then
        drops = drops + 1
        dropped[drops] = field
      else
        set[sets + 1], set[sets + 2] = field, value
        sets = sets + 2
      end
    end
  end
  if sets > 0 then redis.call('HSET', name, unpack(set, 1, sets)) end
  if drops > 0 then redis.call('HDEL', name, unpack(dropped, 1, drops)) end
end

-- Add a job that there is not yet.
function rows.add(job)
  insist_on(job)
  write(key('job', job.id), job, NONE)
  move(FOR_GOOD, job.id, NONE, job)
  reindex(job.id, NONE, job)
end

-- Change some columns of a job; `false` makes one nothing. `before`: the whole row, if it was read.
function rows.change(id, changed, before)
  before = before or rows.read(id)
  local after = setmetatable(changed, {__index = before})
  insist_on(before)
  insist_on(after)
  write(key('job', id), changed, before)
  reindex(id, before, after)
end

-- Add a job that waits in a line, and on which nothing else depends. What changes is known beforehand, here and below, and
-- is written in two thirds of the time that it takes to find it out.
function rows.add_to_line(id, name, line, due_at, payload, columns)
  redis.call('HSET', name, 'id', id, 'payload', payload, 'state', 'pending', 'created_at', moment, 'due_at', due_at,
             unpack(columns))
  index('jobs', '', id, ZERO)
  index('live', '', id, ZERO)
  index('claim', line, id, due_at)
end

-- Hand out a job that waits in a line.
function rows.hand_out(job, line, demand)
  redis.call('HSET', key('job', job.id), 'state', 'running', 'fence', job.fence + 1, 'claim_id', demand.claim_id,
             'worker', demand.worker, unpack(demand.started))
  index('claim', line, job.id, false)
  index('held', demand.worker, job.id, ZERO)
  index('busy', job.queue, job.id, ZERO)
  if job.schedule then index('running', job.schedule, job.id, ZERO) end
end

local PLAIN = {'fence', 'claim_id', 'state', 'queue', 'worker', 'gate', 'schedule', 'unique_key'}

-- Write that a job has gone well, if a claim on it holds, it is the first, and nothing else depends on the job.
-- Return whether it is so.
function rows.end_well(id, fence, claim_id, ended)
  local values = redis.pcall('HMGET', key('job', id), unpack(PLAIN))
  local queue, worker = values[4], values[5]
  if fence ~= 1 or values[1] ~= '1' or values[2] ~= claim_id or values[3] ~= 'running' or not (queue and worker) then
    return false
  end
  if values[6] or values[7] or values[8] then return false end
  redis.call('HSET', key('job', id), 'state', 'succeeded', unpack(ended))
  index('live', '', id, false)
  index('held', worker, id, false)
  index('busy', queue, id, false)
  return true
end

-- Note how far a run is, on which no index depends.
function rows.note_progress(id, fraction, note)
  redis.call('HSET', key('job', id), 'progress', fraction)
  if note then
    redis.call('HSET', key('job', id), 'progress_note', note)
  else
    redis.call('HDEL', key('job', id), 'progress_note')
  end
end

-- Remove a job with all that belongs to it.
function rows.remove(id)
  local job = rows.read(id)
  insist_on(job)
  move(FOR_GOOD, id, job, NONE)
  reindex(id, job, NONE)
  redis.call('DEL', key('job', id), key('attempts', id), key('logs', id))
  return true
end

-- List a job no more where it is not to be.
function rows.unlist(id, name, part)
  index(name, part, id, false)
end

-- List a job no more in one place, that cannot be read or listed, so that it keeps nobody else from work.
function rows.set_aside(id, name, part)
  index(name, part, id, false)
  if name == 'gate' then index('gated', '', id, false) end
  redis.call('ZADD', key('aside'), now, id)
end

-- Do something with a job that is listed in a place; nothing where somebody has edited it so that it cannot be done.
function rows.with(id, name, part, deed, ...)
  local done, answer = pcall(deed, id, ...)
  if done then return answer end
  rows.set_aside(id, name, part)
end
