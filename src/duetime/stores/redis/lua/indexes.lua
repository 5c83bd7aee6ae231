-- The indexes over jobs. Nothing but rows.lua has them changed, with the rows themselves, so that they cannot drift apart.

local function line_of(job)
  return job.queue .. '|' .. job.priority .. '|' .. job.task
end

-- Which queues have a limit, as far as this call has asked.
local has_limit = {}

local function limited(queue)
  if has_limit[queue] == nil then has_limit[queue] = redis.call('ZSCORE', key('limited'), queue) and true or false end
  return has_limit[queue]
end

local LIVE = {pending = true, running = true}

-- As text, since it takes Redis longer to write a number down than to list it.
local ZERO = '0'

-- The score of what was triggered by hand among what has run: before every occurrence, so that it comes by id.
local BY_HAND = '-1'

-- Make the place of the jobs of schedules that ended in some way.
local function ended_so(state)
  return function(job)
    if job.state == state and (state ~= 'cancelled' or job.started_at) then return job.schedule, job.occurrence or BY_HAND end
  end
end

-- The indexes over jobs, each with what tells in which part of it a job is listed, if in any, and under which score.
local FOR_GOOD = {
  {'jobs', function() return '', ZERO end},
  {'history', function(job) return job.schedule, ZERO end},
}
local OF_ALL = {
  {'live', function(job) if LIVE[job.state] then return '', ZERO end end},
  {'claim', function(job) if job.state == 'pending' and not job.gate then return line_of(job), job.due_at end end},
  {'held', function(job) if job.state == 'running' then return job.worker or '', ZERO end end},
  {'busy', function(job) if job.state == 'running' and limited(job.queue) then return job.queue, ZERO end end},
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
  {'succeeded', ended_so('succeeded')},
  {'failed', ended_so('failed')},
  {'cancelled', ended_so('cancelled')},
}

-- The indexes that list the parts of another index.
local REGISTRIES = {claim = 'lines', gate = 'places', held = 'holders'}

-- The indexes that are put in order when they are read: to list them without an order takes half the time.
local UNORDERED = {held = true}

-- The name of the key that a job holds, if it does: while it lives, or past its end where it asked for that.
local function key_of(job)
  if not job.unique_key or job.key_held == 0 then return nil end
  if not (LIVE[job.state] or job.keep_key or job.key_until) then return nil end
  return joined(job.task, job.unique_key)
end

local NONE = {}

-- What is to change in the indexes, by the key of a list: jobs that come, each behind its score; jobs that leave; and jobs
-- that may change more than once in a call, each with its last score, or `false` where it leaves.
local changes = {}

local function change_of(name, part)
  local listed = key(name, part ~= '' and part or nil)
  local change = changes[listed]
  if not change then
    change = {index = name, part = part, added = {}, removed = nil, scores = nil}
    changes[listed] = change
  end
  return change
end

local function index(name, part, id, score)
  local change = change_of(name, part)
  change.scores = change.scores or {}
  change.scores[id] = score
end

local function add(change, id, score)
  local added = change.added
  if not UNORDERED[change.index] then added[#added + 1] = score end
  added[#added + 1] = id
end

-- Note that a job comes to a list; in this call nothing else changes about it there.
local function enlist(name, part, id, score)
  add(change_of(name, part), id, score)
end

-- Note that a job leaves a list; in this call nothing else changes about it there.
local function strike(name, part, id)
  local change = change_of(name, part)
  change.removed = change.removed or {}
  change.removed[#change.removed + 1] = id
end

local function write_change(listed, change)
  local unordered, registry = UNORDERED[change.index], REGISTRIES[change.index]
  local added, removed = change.added, change.removed or {}
  for id, score in pairs(change.scores or NONE) do
    if score then add(change, id, score) else removed[#removed + 1] = id end
  end
  if #added > 0 then in_chunks(unordered and 'SADD' or 'ZADD', listed, added) end
  if #removed > 0 then in_chunks(unordered and 'SREM' or 'ZREM', listed, removed) end
  if registry and (#added > 0 or redis.call('EXISTS', listed) == 1) then
    redis.call('ZADD', key(registry), ZERO, change.part)
  elseif registry then
    redis.call('ZREM', key(registry), change.part)
  end
end

-- Write what is to change, in one stroke for each key: the end of every call, and before a call reads an index that it
-- may have changed itself. Most of the time that a call takes goes into the number of strokes. A key that was
-- replaced by something else keeps no other from being written, and nothing is left for the next call.
function rows.flush()
  local due, failed = changes, nil
  changes, has_limit = {}, {}
  for listed, change in pairs(due) do
    local done, why = pcall(write_change, listed, change)
    if not done then failed = why end
  end
  if failed then error(failed) end
end

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
