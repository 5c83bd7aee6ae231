-- New jobs: each is stored once, however often the request is repeated.

local jobs = {}

-- Complete a request by the time of the server.
local function dated(new)
  local due_at = new.due_at or now + (new.delay or 0)
  new.expires_at = new.expires_at or (new.expires and due_at + new.expires)
  new.key_until = new.key_period and now + new.key_period
  new.due_at = due_at == now and moment or due_at
  new.delay, new.expires, new.key_period = nil, nil, nil
  return new
end

-- Return the job that stands for an occurrence.
function jobs.at_occurrence(schedule, occurrence)
  rows.flush()
  return redis.call('ZRANGE', key('occurrences', schedule), occurrence, occurrence, 'BYSCORE', 'LIMIT', 0, 1)[1]
end

-- Store a request, and return the id it is stored under: another's, where that one stands for its occurrence.
function jobs.store(new)
  if redis.call('EXISTS', key('job', new.id)) == 1 then return new.id end
  local there = new.schedule and new.occurrence and jobs.at_occurrence(new.schedule, new.occurrence)
  if there then return there end
  dated(new)
  new.created_at = moment
  if new.state ~= 'pending' then new.finished_at = moment end
  rows.add(new)
  return new.id
end

-- Store jobs without regard to unique keys.
function jobs.store_all(list)
  return collect(list or {}, jobs.store)
end

local HOLDER = {'asked', 'id', 'state', 'payload', 'finished_at', 'keep_key', 'key_until'}

-- Return the job that stands for a request: its own if it is stored already, else the one that has its key.
local function holder_of(want)
  if redis.call('EXISTS', key('job', want.id)) == 1 then return want.id end
  return redis.call('HGET', key('keys'), joined(want.task, want.unique_key)) or nil
end

local function pack_holder(want)
  local id = holder_of(want)
  local row = id and rows.read(id)
  if not (row and STATES[row.state]) then return nil end
  row.asked = want.id
  return rows.packed(row, HOLDER)
end

-- Whether each key is as it was when it was decided: held by the same job in the same state, or free.
local function as_seen(asked)
  for _, want in ipairs(asked) do
    local id = holder_of(want)
    if id ~= want.holder then return false end
    if id and id ~= want.id and redis.pcall('HGET', key('job', id), 'state') ~= want.state then return false end
  end
  return true
end

local FORGOTTEN = {
  'failures', 'crashes', 'blames', 'error', 'traceback', 'error_type', 'fingerprint', 'reason', 'progress',
  'progress_note',
}
local REPLACED = {
  'on_crash', 'retries', 'timeout', 'keep_key', 'key_until', 'parent', 'tags', 'expires_at', 'callbacks', 'result_ttl',
  'failure_ttl', 'headers', 'gate', 'secret',
}

local steps = {}

function steps.add(step) return jobs.store(step.job) end

-- Turn a job that waits under a key into another; it keeps its id and forgets how often it was tried.
function steps.replace(step)
  local new = dated(step.job)
  for _, name in ipairs(FORGOTTEN) do new[name] = false end
  for _, name in ipairs(REPLACED) do new[name] = new[name] or false end
  new.id, new.state, new.task, new.schedule, new.occurrence, new.span_count = nil, nil, nil, nil, nil, nil
  rows.change(step.id, new)
  return step.id
end

-- Take the key from a job.
function steps.free(step)
  rows.change(step.id, {key_held = 0})
  return step.id
end

-- Whether none of these keys is there.
local function all_fresh(names)
  for first = 1, #names, CHUNK do
    if redis.call('EXISTS', unpack(names, first, math.min(first + CHUNK - 1, #names))) > 0 then return false end
  end
  return true
end

-- How many values tell of one of many jobs of one kind: its id, its arguments and, if it has one, its due time.
local ALIKE = 3

-- Store jobs of one kind. All that is told of them comes in one list, since a table for each takes as long as the rest.
local function store_alike(alike)
  local told, names = alike.rows, {}
  for place = 1, #told, ALIKE do names[#names + 1] = key('job', told[place]) end
  local fresh, soonest = all_fresh(names), string.format('%d', now + alike.delay)
  for place, name in ipairs(names) do
    if fresh or redis.call('EXISTS', name) == 0 then
      local id, payload, due_at = unpack(told, (place - 1) * ALIKE + 1, place * ALIKE)
      due_at = due_at and string.format('%d', due_at) or soonest
      rows.add_to_line(id, name, alike.line, due_at, payload, alike.columns)
    end
  end
end

-- Store jobs of one kind without keys; or take the steps that were decided on what a look at keys had found, if that still
-- holds.
verb('enqueue', WRITES, function(asked)
  if asked.alike then
    audit.add(asked.entries)
    return store_alike(asked.alike)
  end
  if not as_seen(asked.keys) then return reply({done = false}, collect(asked.keys, pack_holder)) end
  -- What fails half way stays half done, so that nothing is begun that cannot be ended.
  for _, step in ipairs(asked.steps) do
    if step.job and not STATES[step.job.state] then
      error({err = 'DUETIME there is no state ' .. tostring(step.job.state)})
    end
  end
  audit.add(asked.entries)
  return reply({done = true, ids = collect(asked.steps, function(step) return steps[step.verb](step) end)})
end)
