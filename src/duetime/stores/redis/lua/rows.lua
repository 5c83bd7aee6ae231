-- The rows of jobs. Nothing but this file writes them, and the indexes with them, so that they cannot drift apart.

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

-- The columns that share the field `line`, those that share the field `claim`, and those that share the field `extras`, which
-- most jobs do without: a claim hands the line and the extras on as they are. `extras` is JSON of texts, since Redis would
-- write numbers with too few digits there. With values of more than 64 bytes Redis keeps a row in twice the room.
local OF_LINE = {queue = true, priority = true, task = true}
local OF_CLAIM = {fence = true, claim_id = true}
local OF_EXTRAS = {
  failures = true, crashes = true, blames = true, on_crash = true, retries = true, timeout = true, schedule = true,
  occurrence = true, cancel_requested_at = true, unique_key = true, tags = true, parent = true, callbacks = true,
  expires_at = true, result_ttl = true, failure_ttl = true, headers = true,
  gate = true,
}

local STATES = {pending = true, running = true, succeeded = true, failed = true, cancelled = true, skipped = true}

local JOB = {
  'id', 'task', 'payload', 'queue', 'priority', 'state', 'due_at', 'created_at', 'started_at', 'finished_at', 'worker',
  'fence', 'failures', 'crashes', 'blames', 'on_crash', 'retries', 'timeout', 'result', 'result_error', 'error',
  'traceback', 'reason', 'cancel_requested_at', 'schedule', 'occurrence', 'span_first', 'span_count', 'unique_key',
  'tags', 'parent', 'callbacks', 'expires_at', 'result_ttl', 'failure_ttl', 'headers', 'gate', 'error_type',
  'fingerprint', 'secret', 'progress', 'progress_note',
}

local function put_column(row, name, value)
  if NUMBERS[name] then row[name] = tonumber(value) else row[name] = value end
end

-- Make a function that reads texts remember what it has read: jobs of one kind share theirs.
local function remembering(read)
  local known, count = {}, 0
  return function(text)
    local found = known[text]
    if found == nil then
      if count == 1000 then known, count = {}, 0 end
      found = read(text) or false
      known[text], count = found, count + 1
    end
    return found
  end
end

local function split(line)
  return string.match(line, '^(.-)|(%d+)|(.*)$')
end

-- Return what a line stands for, by column; no column of one that is none.
local columns_of_line = remembering(function(line)
  local queue, priority, task = split(line)
  return {queue = queue, priority = tonumber(priority), task = task}
end)

-- Put the columns of a claim together; `false` where there was none yet.
local function claim_of(fence, claim_id)
  return (fence or 0) > 0 and string.format('%d|%s', fence, claim_id or '')
end

-- Return what a claim stands for, by column: all jobs that were handed out together share it.
local columns_of_claim = remembering(function(claim)
  local fence, claim_id = string.match(claim, '^(%d+)|(.*)$')
  return {fence = tonumber(fence), claim_id = claim_id}
end)

-- Return what makes a row have the columns of its extras; `false` if they were edited and cannot be read.
local having_extras = remembering(function(extras)
  local readable, told = pcall(cjson.decode, extras)
  if not readable or type(told) ~= 'table' then return false end
  local columns = setmetatable({}, ABSENT)
  for name, value in pairs(told) do put_column(columns, name, value) end
  return {__index = columns}
end)

-- An empty row with room for most columns, since a table that grows takes as long as all the rest of reading a job.
local function blank()
  return {
    id = nil, line = nil, claim = nil, extras = nil, queue = nil, priority = nil, task = nil, payload = nil, state = nil,
    due_at = nil, created_at = nil, started_at = nil, finished_at = nil, worker = nil, fence = nil, claim_id = nil,
    result = nil,
  }
end

-- Complete a row by the columns that share fields. One whose extras cannot be read is in no queue, and cannot be listed.
local function completed(row, id)
  local having = not row.extras and ABSENT or having_extras(row.extras)
  local place = columns_of_line(having and row.line or '')
  local claim = row.claim and columns_of_claim(row.claim) or NONE
  row.id, row.queue, row.priority, row.task = id, place.queue, place.priority, place.task
  row.fence, row.claim_id = claim.fence, claim.claim_id
  return setmetatable(row, having or ABSENT)
end

-- Read a job, by column; nil if it does not exist, or if its key holds something else.
function rows.read(id)
  local values = redis.pcall('HGETALL', key('job', id))
  if #values == 0 then return nil end
  local row = blank()
  for place = 1, #values, 2 do put_column(row, values[place], values[place + 1]) end
  return completed(row, id)
end

-- Read a few columns, where many jobs are looked at and their arguments are of no interest. The state and the columns
-- that share fields always come with them.
function rows.glance(id, columns)
  local values = redis.pcall('HMGET', key('job', id), 'state', 'line', 'claim', 'extras', unpack(columns))
  if not values[1] then return nil end
  local row = blank()
  row.state, row.line, row.claim, row.extras = values[1], values[2] or nil, values[3] or nil, values[4] or nil
  for place, name in ipairs(columns) do put_column(row, name, values[place + 4] or nil) end
  return completed(row, id)
end

-- Pack what was read as a row of columns. The table is used again and again, to spare its growth.
local values = {}

function rows.packed(row, columns)
  for place = 1, #columns do values[place] = row[columns[place]] or nil end
  return pack_row(values, #columns)
end

-- Whether a job can be listed; it may have been edited by hand.
function rows.sound(job)
  return STATES[job.state] and job.queue and job.task and job.priority and job.due_at
end

-- Read a job; nil if it does not exist or cannot be listed.
function rows.read_sound(id)
  local job = rows.read(id)
  return job and rows.sound(job) and job or nil
end

-- Read a job to show it; nil if it lacks what every job has.
function rows.read_whole(id)
  local job = rows.read_sound(id)
  return job and job.payload and job.created_at and job or nil
end

-- This comes before anything is written: what fails half way stays half done.
local function insist_on(job)
  if not (job and rows.sound(job)) then error({err = 'DUETIME a job that is listed was edited or removed by hand'}) end
end

-- Read a job that is there, and can be listed.
function rows.insist(id)
  local job = rows.read(id)
  insist_on(job)
  return job
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

-- Put the columns that share the field `extras` together; `false` where there are none.
local function extras_of(job)
  local told
  for name in pairs(OF_EXTRAS) do
    local value = job[name]
    if value and value ~= ABSENT.__index[name] then
      told = told or {}
      told[name] = type(value) == 'number' and string.format(value % 1 == 0 and '%d' or '%.17g', value) or value
    end
  end
  return told and cjson.encode(told) or false
end

-- Write what has changed of a job, which has the rest of its columns from what it was.
local function write_job(id, changed, before)
  local fields = {}
  for column, value in pairs(changed) do
    if OF_LINE[column] then
      fields.line = line_of(changed)
    elseif OF_CLAIM[column] then
      fields.claim = claim_of(changed.fence, changed.claim_id)
    elseif OF_EXTRAS[column] then
      if fields.extras == nil then fields.extras = extras_of(changed) end
    elseif column ~= 'id' then
      fields[column] = value
    end
  end
  write(key('job', id), fields, before)
end

-- Add a job that there is not yet.
function rows.add(job)
  insist_on(job)
  write_job(job.id, job, NONE)
  move(FOR_GOOD, job.id, NONE, job)
  reindex(job.id, NONE, job)
end

-- Change some columns of a job; `false` makes one nothing. `before`: the whole row, if it was read.
function rows.change(id, changed, before)
  before = before or rows.read(id)
  local after = setmetatable(changed, {__index = before})
  insist_on(before)
  insist_on(after)
  write_job(id, changed, before)
  reindex(id, before, after)
end

-- Add a job that waits in a line, and on which nothing else depends. What changes is known beforehand, here and below, and
-- is written in two thirds of the time that it takes to find it out.
function rows.add_to_line(id, name, line, due_at, payload, columns)
  redis.call('HSET', name, 'state', 'pending', 'line', line, 'payload', payload, 'due_at', due_at, 'created_at', moment,
             unpack(columns))
  enlist('jobs', '', id, ZERO)
  enlist('live', '', id, ZERO)
  enlist('claim', line, id, due_at)
end

-- Read a job that waits in a line: of one that no worker has had yet, only what a claim on it tells, and where it is.
function rows.read_in_line(id, line)
  local name = key('job', id)
  local state, listed, payload, due_at, extras, claim =
    unpack(redis.pcall('HMGET', name, 'state', 'line', 'payload', 'due_at', 'extras', 'claim'))
  due_at = tonumber(due_at)
  local having = not extras and ABSENT or having_extras(extras)
  if state ~= 'pending' or listed ~= line or not (payload and due_at and having) or claim then return rows.read(id) end
  return setmetatable({id = id, line = line, payload = payload, due_at = due_at, extras = extras, fresh = name}, having)
end

-- Hand out a job that waits in a line and that no worker has had yet.
function rows.hand_out(job, demand)
  redis.call('HSET', job.fresh, 'state', 'running', 'claim', demand.claim, 'worker', demand.worker,
             unpack(demand.started))
  strike('claim', job.line, job.id)
  enlist('held', demand.worker, job.id)
  if job.schedule then index('running', job.schedule, job.id, ZERO) end
end

-- Return what a worker is told of a claim on a job.
function rows.claim_words(job, fence)
  return job.id, fence, job.due_at, job.line, job.payload or '', job.extras or ''
end

-- Pack a claim on a job as a row.
function rows.packed_claim(job, fence)
  return array(6) .. cmsgpack.pack(rows.claim_words(job, fence))
end

-- Write that a job has gone well, if a claim on it holds, it is the first, and nothing else depends on the job.
-- Return whether it is so.
function rows.end_well(id, fence, claim_id, started_at, finished_at, result)
  local name = key('job', id)
  local state, line, claim, worker, extras =
    unpack(redis.pcall('HMGET', name, 'state', 'line', 'claim', 'worker', 'extras'))
  local had = claim and columns_of_claim(claim) or NONE
  if fence ~= 1 or had.fence ~= 1 or had.claim_id ~= claim_id or state ~= 'running' or not (line and worker) then
    return false
  end
  if extras then
    local having = having_extras(extras)
    local job = having and having.__index
    if not job or job.gate or job.schedule or job.unique_key then return false end
  end
  redis.call('HSET', name, 'state', 'succeeded', 'started_at', started_at, 'finished_at', finished_at,
             unpack(result and {'result', result} or NONE))
  strike('live', '', id)
  strike('held', worker, id)
  local queue = columns_of_line(line).queue
  if queue and limited(queue) then index('busy', queue, id, false) end
  return true
end

-- Note how far a run is, on which no index depends.
function rows.note_progress(id, fraction, note)
  redis.call('HSET', key('job', id), 'progress', fraction, unpack(note and {'progress_note', note} or NONE))
  if not note then redis.call('HDEL', key('job', id), 'progress_note') end
end

-- Remove a job with all that belongs to it. `job`: the whole row, if it was read.
function rows.remove(id, job)
  job = job or rows.read(id)
  insist_on(job)
  move(FOR_GOOD, id, job, NONE)
  reindex(id, job, NONE)
  index('aside', '', id, false)
  redis.call('DEL', key('job', id), key('attempts', id), key('logs', id))
  return true
end

-- Remove a job from one list.
function rows.unlist(id, name, part)
  index(name, part, id, false)
end

-- Remove a job that cannot be read from one list, so that it does not hold up others, and set it aside.
function rows.set_aside(id, name, part)
  index(name, part, id, false)
  if name == 'gate' then index('gated', '', id, false) end
  redis.call('ZADD', key('aside'), now, id)
end

-- List a job wherever it belongs; the key that it may have it has all the while.
function rows.list_anew(id, job)
  move(FOR_GOOD, id, NONE, job)
  move(OF_ALL, id, NONE, job)
  if job.gate then move(OF_GATED, id, NONE, job) end
  if job.schedule then move(OF_SCHEDULED, id, NONE, job) end
end

-- Do something with a job that is listed in a place; set it aside if it was edited so that this fails.
function rows.with(id, name, part, deed, ...)
  local done, answer = pcall(deed, id, ...)
  if done then return answer end
  rows.set_aside(id, name, part)
end

-- Return what a worker has, by id.
function rows.held(worker)
  local ids = redis.call('SMEMBERS', key('held', worker))
  table.sort(ids)
  return ids
end

-- List the running jobs of a queue that has just got a limit; for queues without one there is no such list.
function rows.list_busy(queue)
  for _, worker in ipairs(members('holders')) do
    for _, id in ipairs(rows.held(worker)) do
      local job = rows.glance(id, NONE)
      if job and job.state == 'running' and job.queue == queue then index('busy', queue, id, ZERO) end
    end
  end
end
