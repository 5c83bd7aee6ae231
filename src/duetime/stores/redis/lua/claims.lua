-- Claims: handed out one by one, each under a raised fence.

local claims = {}

-- How many rows of one line are looked at for some that are safe to hold.
local LOOKED_AT = 1000

local function split(line)
  return string.match(line, '^(.-)|(%d+)|(.*)$')
end

-- Return the lines of a queue whose tasks are known, by priority.
local function lines_of(queue, tasks, below)
  local found = {}
  for _, line in ipairs(within('lines', queue)) do
    local _, priority, task = split(line)
    if tasks[task] and tonumber(priority) < below then
      local group = found[priority] or {}
      group[#group + 1] = line
      found[priority] = group
    end
  end
  return found
end

-- Return the first jobs of a line that are due in a stretch of time, with their due times.
local function first_of(line, demand, most, offset)
  local from = demand.ahead == 0 and '-inf' or string.format('(%d', now)
  return redis.call('ZRANGE', key('claim', line), from, string.format('%d', now + demand.ahead), 'BYSCORE',
                    'LIMIT', offset, most, 'WITHSCORES')
end

local function safe_to_hold(job)
  return job.on_crash == 'retry' and job.crashes == 0
end

-- Add jobs of one line that may be taken, in order.
local function gather(found, line, demand, most)
  local offset, taken = 0, 0
  repeat
    local some = first_of(line, demand, most, offset)
    for place = 1, #some, 2 do
      local readable, job = pcall(rows.read, some[place])
      if not (readable and job and rows.sound(job)) then
        rows.set_aside(line, some[place])
      elseif taken < most and (not demand.unstarted or safe_to_hold(job)) then
        job.line = line
        found[#found + 1], taken = job, taken + 1
      end
    end
    offset = offset + most
  until taken >= most or #some < 2 * most or offset >= LOOKED_AT
end

local function sooner(one, other)
  if one.due_at ~= other.due_at then return one.due_at < other.due_at end
  return one.id < other.id
end

-- Mark a job as claimed, and return its claim.
function claims.take(job, demand)
  local change = {
    state = 'running', fence = job.fence + 1, claim_id = demand.claim_id, worker = demand.worker,
    started_at = not demand.unstarted and moment,
  }
  rows.change(job.id, change, job)
  job.fence, job.claim_id, job.claimed_at = change.fence, change.claim_id, now
  return rows.packed(job, CLAIM)
end

-- Do the same for a job that was found in a line.
local function take_from_line(job, demand)
  if job.state ~= 'pending' or job.started_at then return claims.take(job, demand) end
  rows.hand_out(job, job.line, demand)
  job.fence, job.claim_id, job.claimed_at = job.fence + 1, demand.claim_id, now
  return rows.packed(job, CLAIM)
end

-- Choose jobs of a queue: the most urgent priority first, by due time within it.
local function choose(queue, demand, tasks, most)
  local chosen, groups = {}, lines_of(queue, tasks, demand.below_priority)
  for priority = 0, demand.below_priority - 1 do
    local found, lines = {}, groups[tostring(priority)] or {}
    for _, line in ipairs(lines) do gather(found, line, demand, most - #chosen) end
    -- One line is in order.
    if #lines > 1 then table.sort(found, sooner) end
    for place = 1, math.min(#found, most - #chosen) do chosen[#chosen + 1] = found[place] end
    if #chosen >= most then break end
  end
  return chosen
end

verb('claim', WRITES, function(demand)
  local taken, tasks = {}, set_of(demand.tasks)
  if not workers.alive(demand.worker) then return reply({}) end
  demand.started = demand.unstarted and {} or {'started_at', moment}
  for _, pair in ipairs(demand.queues) do
    local most = math.min(pair[2], demand.limit - #taken)
    if most > 0 and queues.open(pair[1]) then
      for _, job in ipairs(choose(pair[1], demand, tasks, most)) do
        local readable, claim = pcall(take_from_line, job, demand)
        if readable then taken[#taken + 1] = claim else rows.set_aside(job.line, job.id) end
      end
    end
  end
  return reply({}, taken)
end)

verb('claims_under', READS, function(asked)
  local found = {}
  for _, worker in ipairs(redis.call('ZRANGE', key('holders'), 0, -1)) do
    for _, id in ipairs(redis.call('ZRANGE', key('held', worker), 0, -1)) do
      if redis.call('HGET', key('job', id), 'claim_id') == asked.claim_id then
        local job = rows.read(id)
        job.claimed_at = now
        found[#found + 1] = rows.packed(job, CLAIM)
      end
    end
  end
  return reply({}, found)
end)
