-- Limits over all workers. What runs is counted where it is listed, and nothing is counted up or down.

local limits = {}

-- Of a schedule whose jobs wait for each other, all that runs counts, whatever gate it came through.
local function running_at(gate)
  local schedule = string.match(gate, '^%[schedule:(.*)%]$')
  return redis.call('ZCARD', schedule and key('running', schedule) or key('passed', gate))
end

local function running_in(queue)
  return redis.call('ZCARD', key('busy', queue))
end

local function due(name, most)
  return up_to(name, moment, most, 'WITHSCORES')
end

-- Return ids with due times in pairs as a list of jobs, each with the part of an index that lists it.
local function listed(found, jobs, priority, part)
  for place = 1, #found, 2 do
    jobs[#jobs + 1] = {
      id = found[place], due_at = tonumber(found[place + 1]), priority = tonumber(priority), part = part,
    }
  end
  return jobs
end

-- Tell how full a limited queue is, and which of its jobs without a gate are due.
local function survey_queue(name, tasks, most)
  local facts, waiting, before = queues.read(name), {}, nil
  for _, line in ipairs(within('lines', name)) do
    local priority, task = string.match(line, '|(%d+)|([^|]*)$')
    -- The most urgent lines come first, as their names are sorted.
    if #waiting >= most and priority ~= before then break end
    before = priority
    if tasks[task] then listed(due(key('claim', line), most), waiting, priority, line) end
  end
  facts.queue, facts.running, facts.jobs = name, running_in(name), waiting
  return facts
end

-- Tell how full a gate is, and which jobs of one place there are due.
local function survey_place(place, served, tasks, most)
  local task, gate, queue, priority = string.match(place, '^([^|]*)|(.*)|([^|]*)|(%d+)$')
  if not tasks[task] or not served[queue] or queues.paused(queue) then return nil end
  local waiting = listed(due(key('gate', place), most), {}, priority, place)
  if #waiting == 0 then return nil end
  return {
    task = task, gate = gate, queue = queue, jobs = waiting, running = running_at(gate),
    passed = redis.call('ZCARD', key('passed', gate)), starts = redis.call('HGET', key('gatehouse', gate), 'starts') or nil,
  }
end

-- Return the places of the jobs that fell due last, and whether these are all.
local function latest_places(most)
  local found = {}
  local ids = redis.call('ZRANGE', key('gated'), moment, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, most)
  for _, id in ipairs(ids) do
    local job = rows.glance(id, NONE)
    if job and job.task and job.gate and job.queue and job.priority then
      found[joined(job.task, job.gate, job.queue, job.priority)] = true
    end
  end
  return found, #ids < most
end

-- Look at the places of some tasks, one after another, behind where the last look stopped, until `left` steps are taken:
-- one for each place, and one for each job that is told of. Return the last place if there may be more.
local function walk_on(asked, left, look)
  local reached = asked.after == ''
  local last_task = string.match(asked.after, '^[^|]*')
  for _, task in ipairs(asked.tasks) do
    local from = '[' .. task .. '|'
    if not reached and task == last_task then reached, from = true, '(' .. asked.after end
    local some = reached and redis.call('ZRANGE', key('places'), from, '(' .. task .. '}', 'BYLEX', 'LIMIT', 0, left) or {}
    for _, place in ipairs(some) do
      left = left - 1 - look(place, left)
      if left <= 0 then return place end
    end
  end
  return ''
end

-- Look for jobs that limits may let through: those that fell due last, so that a new one is found at once, and some
-- behind where the last look stopped.
verb('survey', READS, function(asked)
  local answer = {limits = {}, cut = ''}
  local served, tasks, seen = set_of(asked.queues), set_of(asked.tasks), {}
  for _, name in ipairs(asked.queues) do
    if queues.limited(name) and not queues.paused(name) then
      table.insert(answer.limits, survey_queue(name, tasks, asked.limit))
    end
  end
  local function look(place, left)
    local told = not seen[place] and survey_place(place, served, tasks, math.max(1, math.min(asked.limit, left)))
    seen[place] = true
    if told then table.insert(answer.limits, told) end
    return told and #told.jobs or 0
  end
  local latest, whole = latest_places(asked.latest)
  -- Half of all that is told, and at least one job of each.
  local left = math.floor(asked.steps / 2)
  for place in pairs(latest) do left = left - look(place, left) end
  if not whole then answer.cut = walk_on(asked, math.ceil(asked.steps / 2) + math.max(0, left), look) end
  return reply(answer)
end)

-- Remember the last starts under a limit on their rate, as many as it counts.
local function note_starts(name, barrier)
  if not (barrier.started and barrier.rate_count) then return end
  local starts = {}
  for start in string.gmatch(redis.call('HGET', name, 'starts') or '', '%d+') do starts[#starts + 1] = start end
  for _ = 1, barrier.started do starts[#starts + 1] = moment end
  local first = math.max(1, #starts - barrier.rate_count + 1)
  redis.call('HSET', name, 'starts', table.concat(starts, ',', first))
end

-- Return the limits that are no fuller than they were when it was decided who may pass.
local function still_open(list, kind, running)
  local open = {}
  for _, barrier in ipairs(list) do
    local starts = redis.call('HGET', key(kind, barrier.name), 'starts') or nil
    if running(barrier.name) <= barrier.running and starts == barrier.starts then open[barrier.name] = barrier end
  end
  return open
end

-- Of queues, return those whose limits are the same, too; the limits of tasks are known to the worker's code only.
local function still_open_queues(list)
  local open = still_open(list, 'queue', running_in)
  for name, barrier in pairs(open) do
    local now_set = queues.read(name)
    local same = now_set.most == barrier.most and now_set.rate_count == barrier.rate_count
      and now_set.rate_period == barrier.rate_period
    if not same then open[name] = nil end
  end
  return open
end

local function count_start(barrier)
  if barrier then barrier.started = (barrier.started or 0) + 1 end
end

local function note_gate(barrier)
  local name = key('gatehouse', barrier.name)
  redis.call('HSET', name, 'task', barrier.task, 'seen_at', now)
  queues.write_limits(name, barrier)
  redis.call('ZADD', key('gates'), 0, barrier.name)
end

-- Whether a job is still what was chosen, in a queue that is still handed out under the limits it was.
local function as_chosen(job, want)
  return job.state == 'pending' and job.due_at <= now and job.gate == want.gate and job.queue == want.queue
    and not queues.paused(want.queue) and queues.limited(want.queue) == want.limited
end

-- Hand out a job that is still what was chosen, and return the claim as a row.
local function seize(id, want, asked)
  local job = rows.insist(id)
  return as_chosen(job, want) and rows.packed_claim(job, claims.take(job, asked))
end

-- Hand out jobs that were chosen, as far as their limits are as they were seen.
verb('seize', WRITES, function(asked)
  local told = {}
  if not workers.alive(asked.worker) then return end
  local gates, halls = still_open(asked.gates, 'gatehouse', running_at), still_open_queues(asked.queues)
  for _, want in ipairs(asked.jobs) do
    local passes = (not want.gate or gates[want.gate]) and (not want.limited or halls[want.queue])
    local claim = passes and rows.with(want.id, want.gate and 'gate' or 'claim', want.part, seize, want, asked)
    if claim then
      told[#told + 1] = claim
      count_start(gates[want.gate])
      count_start(want.limited and halls[want.queue])
    end
  end
  for name, barrier in pairs(gates) do
    if barrier.started then note_gate(barrier) end
    note_starts(key('gatehouse', name), barrier)
  end
  for name, barrier in pairs(halls) do note_starts(key('queue', name), barrier) end
  return reply({claim_id = asked.claim_id}, told)
end)

local GATE = {'task', 'most', 'rate_count', 'rate_period', 'starts', 'seen_at'}
local GATE_TEXTS = {task = true, starts = true}

local function read_gate(name)
  local gate = read_fields(key('gatehouse', name), GATE, GATE_TEXTS)
  return gate.task and gate
end

-- True for a gate that no job is at, and whose window is over.
local function idle(name)
  local gate = read_gate(name)
  return not gate or (gate.seen_at + (gate.rate_period or 0) < now
    and redis.call('ZCARD', key('passed', name)) == 0 and #within('places', joined(gate.task, name)) == 0)
end

-- Forget idle gates of the next stretch; the next job makes them anew.
verb('prune_gates', FREES, function(asked)
  local names = redis.call('ZRANGE', key('gates'), '(' .. asked.after, '+', 'BYLEX', 'LIMIT', 0, asked.stretch)
  local gone = 0
  for _, name in ipairs(names) do
    if idle(name) then
      redis.call('DEL', key('gatehouse', name))
      leave(name, 'gates')
      gone = gone + 1
    end
  end
  return reply({gone = gone, last = #names == asked.stretch and names[#names] or ''})
end)

-- Tell what else than workers decides whether jobs are handed out: limits as they were last seen.
verb('outlook', READS, function(asked)
  local queue = queues.read(asked.queue)
  local found = {paused_at = queue.paused_at, paused_reason = queue.paused_reason, limits = {}}
  local gate = asked.gate and read_gate(asked.gate)
  if gate then
    gate.kind, gate.name, gate.running = 'task', asked.gate, running_at(asked.gate)
    table.insert(found.limits, gate)
  end
  if queue.most or queue.rate_count then
    queue.kind, queue.name, queue.running = 'queue', asked.queue, running_in(asked.queue)
    table.insert(found.limits, queue)
  end
  return reply(found)
end)
