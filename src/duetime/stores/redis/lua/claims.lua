-- Claims: handed out one by one, each under a raised fence.

local claims = {}

local WITH_SCORES = {'WITHSCORES'}

-- How many rows of one line are passed over for some that may be held.
local LOOKED_AT = 1000

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

-- Whether a worker may claim a job that it does not start at once; before it is due, only one that no request under its key
-- can replace.
local function may_be_held(job, demand)
  return job.on_crash == 'retry' and job.crashes == 0 and (demand.ahead == 0 or not job.unique_key)
end

-- Read on in a line: the next of its jobs that are due in a stretch of time; with their due times only if several lines
-- are compared, since Redis takes long to write numbers.
local function read_on(head, demand)
  local from = demand.ahead == 0 and '-inf' or past(now)
  head.found = redis.call('ZRANGE', key('claim', head.line), from, string.format('%d', now + demand.ahead), 'BYSCORE',
                          'LIMIT', head.offset, head.step, unpack(head.width == 2 and WITH_SCORES or NONE))
  head.place, head.offset = 1, head.offset + head.step
end

-- Return the id that a line has in front, or nothing at its end.
local function front(head, demand)
  local through = head.place > #head.found
  if through and #head.found == head.width * head.step and head.skipped < LOOKED_AT then read_on(head, demand) end
  return head.found[head.place]
end

-- Return the line whose first job comes before those of the others.
local function foremost(heads, demand)
  local first, first_id, first_due
  for _, head in ipairs(heads) do
    local id = front(head, demand)
    if id and #heads == 1 then return head, id end
    local due = id and tonumber(head.found[head.place + 1])
    if id and (not first or due < first_due or (due == first_due and id < first_id)) then
      first, first_id, first_due = head, id, due
    end
  end
  return first, first_id
end

-- Add jobs of some lines that may be taken, in order. Only rows are read that are taken, as far as that can be known.
local function gather(chosen, lines, demand, most)
  local heads = {}
  for place, line in ipairs(lines) do
    heads[place] = {
      line = line, offset = 0, skipped = 0, width = #lines == 1 and 1 or 2,
      step = math.max(10, math.ceil((most - #chosen) / #lines)),
    }
    read_on(heads[place], demand)
  end
  while #chosen < most do
    local head, id = foremost(heads, demand)
    if not head then return end
    head.place = head.place + head.width
    local job = rows.read_in_line(id, head.line)
    if not (job and (job.fresh or rows.sound(job))) then
      rows.set_aside(id, 'claim', head.line)
    elseif not job.fresh and job.state ~= 'pending' then
      rows.unlist(id, 'claim', head.line)
    elseif not demand.unstarted or may_be_held(job, demand) then
      chosen[#chosen + 1] = job
    else
      head.skipped = head.skipped + 1
    end
  end
end

-- Mark a job as claimed, and return its fence.
function claims.take(job, demand)
  local change = {
    state = 'running', fence = job.fence + 1, claim_id = demand.claim_id, worker = demand.worker,
    started_at = not demand.unstarted and moment,
  }
  rows.change(job.id, change, job)
  return change.fence
end

-- Do the same for a job that was found in a line.
local function take_from_line(job, demand)
  if not job.fresh then return claims.take(job, demand) end
  rows.hand_out(job, demand)
  return 1
end

-- Choose jobs of a queue: the most urgent priority first, by due time within it.
local function choose(queue, demand, tasks, most)
  local chosen, groups = {}, lines_of(queue, tasks, demand.below_priority)
  for priority = 0, demand.below_priority - 1 do
    local lines = groups[tostring(priority)]
    if lines then gather(chosen, lines, demand, most) end
    if #chosen >= most then break end
  end
  return chosen
end

verb('claim', WRITES, function(demand)
  local told, taken, tasks = {}, 0, set_of(demand.tasks)
  if not workers.alive(demand.worker) then return end
  demand.started = demand.unstarted and {} or {'started_at', moment}
  demand.claim = claim_of(1, demand.claim_id)
  for _, pair in ipairs(demand.queues) do
    local most = math.min(pair[2], demand.limit - taken)
    if most > 0 and queues.open(pair[1]) then
      for _, job in ipairs(choose(pair[1], demand, tasks, most)) do
        local readable, fence = pcall(take_from_line, job, demand)
        if readable then
          taken = taken + 1
          told[taken] = rows.packed_claim(job, fence)
        else
          rows.set_aside(job.id, 'claim', job.line)
        end
      end
    end
  end
  return reply({claim_id = demand.claim_id}, told)
end)

verb('claims_under', READS, function(asked)
  return reply({claim_id = asked.claim_id}, collect(rows.held(asked.worker), function(id)
    local held = rows.glance(id, NONE)
    local job = held and held.claim_id == asked.claim_id and rows.read_sound(id)
    return job and rows.packed_claim(job, job.fence)
  end))
end)
