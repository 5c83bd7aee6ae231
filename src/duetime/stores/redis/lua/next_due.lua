-- When the next job falls due.

local next_due = {}

-- How many at gates are looked at, the next ones by due time.
local NEAR = 100

local function earlier(one, other)
  return one and other and math.min(one, other) or one or other
end

-- Return when the first job of some tasks falls due in a queue, after a moment if one is given.
local function first_in(queue, tasks, after)
  local first
  for _, line in ipairs(within('lines', queue)) do
    if tasks[string.match(line, '|%d+|(.*)$')] then
      first = earlier(first, first_score(key('claim', line), after and past(after)))
    end
  end
  return first
end

-- Return when the next job at a gate falls due; if none of the next ones is for these, when to look further.
local function first_gated(served, tasks)
  local near = redis.call('ZRANGE', key('gated'), '(' .. moment, '+inf', 'BYSCORE', 'LIMIT', 0, NEAR,
                          'WITHSCORES')
  for place = 1, #near, 2 do
    local job = rows.glance(near[place], NONE)
    if job and tasks[job.task] and served[job.queue] then return tonumber(near[place + 1]) end
  end
  return #near == 2 * NEAR and tonumber(near[#near]) or nil
end

-- Whether a queue is limited or a job waits at a gate.
function next_due.limited()
  return redis.call('EXISTS', key('limited'), key('gated')) > 0
end

-- Return when the next job falls due that no limit applies to.
function next_due.job(names, tasks)
  local first
  for _, queue in ipairs(names) do
    if queues.open(queue) then first = earlier(first, first_in(queue, tasks)) end
  end
  return first
end

verb('next_due', READS, function(asked)
  local tasks = set_of(asked.tasks)
  -- Of what is limited only the future counts: whether the rest may start is for `claim_limited` to tell.
  local later = first_gated(set_of(asked.queues), tasks)
  for _, queue in ipairs(asked.queues) do
    if queues.limited(queue) and not queues.paused(queue) then later = earlier(later, first_in(queue, tasks, now)) end
  end
  return reply({due_at = next_due.job(asked.queues, tasks), limited_at = later, limited = next_due.limited()})
end)
