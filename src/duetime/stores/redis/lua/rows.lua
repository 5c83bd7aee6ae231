-- The rows of jobs, and the indexes over them. Nothing but this file writes either, so that they cannot drift apart.

-- What is a number in a job, with what a missing one stands for.
local NUMBERS = {
  priority = false, due_at = false, created_at = false, started_at = false, finished_at = false, fence = 0,
  failures = 0, crashes = 0, blames = 0, retries = false, timeout = false, cancel_requested_at = false,
  occurrence = false, span_first = false, span_count = 1, keep_key = false, key_until = false, expires_at = false,
  result_ttl = false, failure_ttl = false, progress = false, key_held = 1,
}

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

local function number_or_text(name, value)
  local default = NUMBERS[name]
  if default == nil then return value end
  return tonumber(value) or default
end

local ABSENT = {__index = function(_, name) return NUMBERS[name] or false end}

-- Read a job, by column; `false` for what is nothing, and `nil` in place of a job that there is not. All of it: that
-- takes a third of the time that it takes to ask for as many columns as the indexes go by.
function rows.read(id)
  local values = redis.call('HGETALL', key('job', id))
  if #values == 0 then return nil end
  local row = {}
  for place = 1, #values, 2 do
    local name = values[place]
    row[name] = number_or_text(name, values[place + 1])
  end
  return setmetatable(row, ABSENT)
end

-- Read a few columns, where many jobs are looked at and their arguments are of no interest.
function rows.glance(id, columns)
  local values = redis.call('HMGET', key('job', id), 'id', unpack(columns))
  if not values[1] then return nil end
  local row = {}
  for place, name in ipairs(columns) do
    row[name] = values[place + 1] and number_or_text(name, values[place + 1])
  end
  return setmetatable(row, ABSENT)
end

-- Pack what was read as a row of columns.
function rows.packed(row, columns)
  local values = {}
  for place, name in ipairs(columns) do values[place] = row[name] or nil end
  return pack_row(values, #columns)
end

-- Pack a job as a row of columns; nothing in place of one that there is not.
function rows.pack(id, columns)
  local row = rows.read(id)
  return row and rows.packed(row, columns)
end

function rows.pack_all(ids, columns)
  local packed = {}
  for _, id in ipairs(ids) do packed[#packed + 1] = rows.pack(id, columns) end
  return packed
end

local STATES = {pending = true, running = true, succeeded = true, failed = true, cancelled = true, skipped = true}
local LIVE = {pending = true, running = true}
local RAN = {succeeded = true, failed = true}

-- Return the keys that a job is listed under, each with its score and, for keys that come and go, who lists them.
local function places(job)
  local found = {}
  if not job then return found end
  local state = job.state
  found[key('jobs')] = {0}
  if LIVE[state] then found[key('live')] = {0} end
  if state == 'pending' and job.gate then
    local place = joined(job.task, job.gate, job.queue, job.priority)
    found[key('gated')] = {job.due_at}
    found[key('gate', place)] = {job.due_at, 'places', place}
  elseif state == 'pending' then
    local line = joined(job.queue, job.priority, job.task)
    found[key('claim', line)] = {job.due_at, 'lines', line}
  elseif state == 'running' then
    found[key('held', job.worker or '')] = {0, 'holders', job.worker or ''}
    found[key('busy', job.queue)] = {0}
    if job.gate then found[key('passed', job.gate)] = {0} end
  elseif state ~= 'succeeded' then
    found[key('unsuccessful')] = {0}
  end
  if job.schedule then
    found[key('history', job.schedule)] = {0}
    if LIVE[state] then found[key('live', job.schedule)] = {job.occurrence or 0} end
    if job.occurrence then found[key('occurrences', job.schedule)] = {job.occurrence} end
    if job.occurrence and RAN[state] then found[key(state, job.schedule)] = {job.occurrence} end
  end
  return found
end

-- The name of the key that a job holds, if it does: while it lives, or past its end where it asked for that.
local function key_of(job)
  if not (job and job.unique_key) or job.key_held == 0 then return nil end
  if not (LIVE[job.state] or job.keep_key or job.key_until) then return nil end
  return joined(job.task, job.unique_key)
end

-- What is to change in the indexes: by key and job, its score, or `false` where it leaves.
local changes, lists = {}, {}

local function index(name, place, id, score)
  changes[name] = changes[name] or {}
  changes[name][id] = score
  lists[name] = place
end

-- Write what is to change, in one stroke for each key: the end of every call, and before a call reads an index that it
-- may have changed itself. Most of the time that a call takes goes into the number of strokes.
function rows.flush()
  for name, jobs in pairs(changes) do
    local added, removed = {}, {}
    for id, score in pairs(jobs) do
      if score then
        added[#added + 1] = score
        added[#added + 1] = id
      else
        removed[#removed + 1] = id
      end
    end
    in_chunks('ZADD', name, added)
    in_chunks('ZREM', name, removed)
    local _, registry, entry = unpack(lists[name])
    if registry and redis.call('EXISTS', name) == 1 then
      redis.call('ZADD', key(registry), 0, entry)
    elseif registry then
      redis.call('ZREM', key(registry), entry)
    end
  end
  changes, lists = {}, {}
end

-- Return what brings the indexes from one state of a job to another. To find that out comes first, because it fails for
-- a row that somebody has edited, and what fails half way stays half done.
local function reindexing(id, before, after)
  local old, new = places(before), places(after)
  local had, has = key_of(before), key_of(after)
  return function()
    for name, place in pairs(old) do
      if not new[name] then index(name, place, id, false) end
    end
    for name, place in pairs(new) do
      if not old[name] or old[name][1] ~= place[1] then index(name, place, id, place[1]) end
    end
    if had == has then return end
    if had and redis.call('HGET', key('keys'), had) == id then redis.call('HDEL', key('keys'), had) end
    if has then redis.call('HSET', key('keys'), has, id) end
  end
end

-- Write some fields of a hash; `false` makes one nothing.
local function write(name, changes)
  local set, dropped = {}, {}
  for field, value in pairs(changes) do
    if value == false then
      dropped[#dropped + 1] = field
    else
      set[#set + 1] = field
      set[#set + 1] = value
    end
  end
  if #set > 0 then redis.call('HSET', name, unpack(set)) end
  if #dropped > 0 then redis.call('HDEL', name, unpack(dropped)) end
end

-- Add a job that there is not yet.
function rows.add(job)
  local reindex = reindexing(job.id, nil, job)
  write(key('job', job.id), job)
  reindex()
end

-- Change some columns of a job; `false` makes one nothing. `before`: the whole row, if it was read.
function rows.change(id, changed, before)
  before = before or rows.read(id)
  local after, differs = {}, {}
  for name, value in pairs(before) do after[name] = value end
  for name, value in pairs(changed) do
    after[name] = value
    if value ~= before[name] then differs[name] = value end
  end
  local reindex = reindexing(id, before, setmetatable(after, ABSENT))
  write(key('job', id), differs)
  reindex()
end

-- Remove a job with all that belongs to it.
function rows.remove(id)
  reindexing(id, rows.read(id), nil)()
  redis.call('DEL', key('job', id), key('attempts', id), key('logs', id))
end

-- Hand a job out no more that cannot be read, so that it keeps nobody else from work.
function rows.set_aside(line, id)
  index(key('claim', line), {0, 'lines', line}, id, false)
  redis.call('ZADD', key('aside'), now, id)
end
