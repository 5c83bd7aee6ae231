-- Schedules: add, change, fire.

local SCHEDULE = {
  'name', 'task', 'payload', 'trigger', 'declared', 'owner', 'queue', 'priority', 'on_crash', 'retries', 'timeout',
  'terms', 'overlap', 'overlap_limit', 'misfire', 'misfire_window', 'misfire_limit', 'pause_after', 'paused_at',
  'paused_reason', 'paused_by', 'paused_until', 'parked_at', 'fired_through', 'next_at', 'made', 'streak_from', 'rev',
  'created_at', 'updated_at', 'live', 'streak',
}
local SCHEDULE_TEXTS = {
  name = true, task = true, payload = true, trigger = true, declared = true, owner = true, queue = true,
  on_crash = true, terms = true, overlap = true, misfire = true, paused_reason = true, paused_by = true,
}

-- Read a schedule, by column; `nil` if there is none, or if the key holds something else.
local function read_schedule(name)
  local row = read_hash(key('schedule', name))
  for column, value in pairs(row or NONE) do
    if not SCHEDULE_TEXTS[column] then row[column] = tonumber(value) end
  end
  return row
end

-- Count the failures since the last success, back to where the schedule counts from.
local function streak(row, name)
  if not row.pause_after then return 0 end
  local from = row.streak_from or 0
  local won = redis.call('ZRANGE', key('succeeded', name), '+inf', from, 'BYSCORE', 'REV', 'LIMIT', 0, 1,
                         'WITHSCORES')[2]
  return redis.call('ZCOUNT', key('failed', name), won and '(' .. won or from, '+inf')
end

local function pack_schedules(names)
  return collect(names, function(name)
    local row = read_schedule(name)
    if not row then return nil end
    row.live, row.streak = redis.call('ZCARD', key('live', name)), streak(row, name)
    return rows.packed(row, SCHEDULE)
  end)
end

local function list_under(index, at, name)
  if at then redis.call('ZADD', key(index), at, name) else leave(name, index) end
end

-- Write what has changed of a schedule, and list it under its next time.
local function write_schedule(name, row, changes)
  write(key('schedule', name), changes, row)
  for column, value in pairs(changes) do row[column] = value end
  list_under('next', not row.parked_at and not row.paused_at and row.next_at, name)
  list_under('until', not row.parked_at and row.paused_at and row.paused_until, name)
end

-- Whether a job has not begun: its occurrence is still to come, or it waits for the time that was drawn for it and those
-- are asked for.
local function planted(job, asked)
  if job.occurrence > now then return true end
  return asked.drawn and job.due_at > now and job.fence == (job.state == 'pending' and 0 or 1)
end

-- Cancel a planted job that no worker has claimed. An occurrence that is to come becomes free to be planted again, and one
-- that is named free for another record; any other stays with its job. Return what became free.
local function call_off(job, asked)
  local change = {state = 'cancelled', finished_at = now, reason = asked.reason}
  local freed = (job.occurrence > now or asked.only) and job.occurrence
  if freed then change.span_first, change.occurrence = freed, false end
  rows.change(job.id, change, job)
  return freed or nil
end

-- Ask the worker that holds a planted job not to start it. It calls back no job, as one that no worker holds, unless
-- it was cancelled before.
local function ask_back(job, asked)
  local change = {}
  if not job.cancel_requested_at then
    change = {cancel_requested_at = now, cancel_reason = asked.reason, callbacks = false}
  end
  rows.change(job.id, change, job)
  hint('worker', job.worker or '')
end

-- Take back a job if it is planted, and return the occurrence that became free.
local function take_back(id, asked)
  local job = rows.insist(id)
  if not planted(job, asked) then return nil end
  if job.state == 'pending' then return call_off(job, asked) end
  if asked.held and not job.started_at then ask_back(job, asked) end
end

-- Say among which of the jobs that a schedule has not finished its planted ones are.
local function planted_range(asked)
  return asked.only or (asked.drawn and '(0' or past(now)), asked.only or '+inf'
end

-- How many jobs a call looks at for those that are planted.
local FEW = 1000

-- Whether a schedule has too many unfinished jobs for one call: then the planted ones are looked up by other calls first.
local function crowded(name, asked)
  return not asked.ids and redis.call('ZCOUNT', key('live', name), planted_range(asked)) > FEW
end

-- Take back the planted jobs of a schedule, and return the occurrences that became free, in their order.
local function withdraw(name, asked)
  local first, last = planted_range(asked)
  rows.flush()
  return collect(asked.ids or redis.call('ZRANGE', key('live', name), first, last, 'BYSCORE'), function(id)
    return rows.with(id, 'live', name, take_back, asked)
  end)
end

-- What comes after every id.
local LAST = '~'

local PLANTED = {'due_at'}

-- Look at some of the jobs that a schedule has not finished for those that are planted; tell where to look on.
verb('planted', READS, function(asked)
  local ids = {}
  local after = asked.after or {score = asked.drawn and '0' or moment, id = LAST}
  local some = onward(key('live', asked.name), after, asked.most)
  for place = 1, #some, 2 do
    local job = rows.glance(some[place], PLANTED)
    if job and job.occurrence and job.due_at and planted(job, asked) then ids[#ids + 1] = some[place] end
  end
  local last = #some == 2 * asked.most and {score = some[#some], id = some[#some - 1]} or nil
  return reply({ids = ids, last = last})
end)

-- Put a schedule back to before what was withdrawn, as if those jobs had not been made. A new trigger has made none.
local function rewind(row, freed, again)
  if #freed == 0 then return end
  row.made = math.max(0, row.made - #freed)
  if again then
    row.fired_through = freed[1] - 1
    if not row.parked_at then row.next_at = freed[1] end
  end
end

-- Whether a schedule is as it was read.
local function as_read(change)
  local row = read_schedule(change.row.name)
  if not change.was then return not row end
  return row and row.rev == change.was.rev and row.fired_through == change.was.fired_through
end

-- Write a change with all that belongs to it.
local function put(change)
  local row, name = change.row, change.row.name
  row.rev = (change.was and change.was.rev or 0) + 1
  row.created_at = tonumber(redis.pcall('HGET', key('schedule', name), 'created_at')) or now
  row.updated_at = now
  if change.withdraw then rewind(row, withdraw(name, change.withdraw), change.withdraw.again) end
  redis.call('DEL', key('schedule', name))
  redis.call('ZADD', key('schedules'), 0, name)
  write_schedule(name, {}, row)
  jobs.store_all(change.jobs)
  audit.add({change.entry})
end

-- Write changes whose schedules are as they were read. What had been written before is known by its entry.
verb('write_schedules', WRITES, function(asked)
  local fit, names = {}, {}
  for place, change in ipairs(asked.changes) do
    fit[place] = as_read(change)
    if fit[place] or change.entry and audit.has(change.entry.id) then names[#names + 1] = change.row.name end
  end
  if asked.whole and #names < #asked.changes then return reply({names = {}}) end
  local busy = {}
  for place, change in ipairs(asked.changes) do
    if fit[place] and change.withdraw and crowded(change.row.name, change.withdraw) then busy[#busy + 1] = place end
  end
  if #busy > 0 then return reply({crowded = busy}) end
  for place, change in ipairs(asked.changes) do
    if fit[place] then put(change) end
  end
  return reply({names = names})
end)

verb('delete_schedule', FREES, function(asked)
  -- It was this very deletion, of which the answer was lost; what is there now was added since.
  if audit.has(asked.entry.id) then return reply({deleted = true}) end
  local row = read_schedule(asked.name)
  if not row then return reply({deleted = false}) end
  -- Whatever was planted since those were looked for has moved the schedule.
  local moved = asked.was and (row.rev ~= asked.was.rev or row.fired_through ~= asked.was.fired_through)
  if moved or crowded(asked.name, asked.withdraw) then
    return reply({crowded = {rev = row.rev, fired_through = row.fired_through}})
  end
  withdraw(asked.name, asked.withdraw)
  leave(asked.name, 'schedules', 'next', 'until')
  redis.call('DEL', key('schedule', asked.name))
  audit.add({asked.entry})
  return reply({deleted = true})
end)

-- List what goes on again, then what is to be fired; and when the next ones come up.
verb('due_schedules', READS, function(asked)
  local edge = now + asked.ahead
  local found = up_to(key('until'), now, asked.limit)
  for _, name in ipairs(up_to(key('next'), edge, asked.limit)) do
    found[#found + 1] = name
  end
  local next_at, resumes_at = first_score(key('next'), past(edge)), first_score(key('until'), past(now))
  return reply({next_at = next_at, resumes_at = resumes_at}, pack_schedules(found))
end)

-- Whether a schedule was not moved, changed or paused since. One whose pause is over can be moved on before it resumes.
local function movable(row, firing)
  if not row or row.parked_at or row.rev ~= firing.rev or row.fired_through ~= firing.expected then return false end
  return not row.paused_at or (row.paused_until and row.paused_until <= now)
end

local function move(row, firing)
  local change = {fired_through = firing.fired_through, next_at = firing.next_at or false, made = row.made + firing.made}
  if firing.pause or firing.resumes then
    change.paused_at, change.paused_reason = firing.pause and now or false, firing.pause or false
    change.paused_by, change.paused_until = firing.pause and firing.who or false, false
    change.rev, change.updated_at = row.rev + 1, now
  end
  if firing.resumes then change.streak_from = now end
  write_schedule(firing.name, row, change)
end

-- Return the jobs that a schedule has made at its own times and that have not ended; without what was triggered
-- by hand, which has no occurrence, and what makes up for missed ones, which has a first occurrence that it stands for.
local function fired_jobs(name)
  rows.flush()
  return collect(redis.call('ZRANGE', key('live', name), '(0', '+inf', 'BYSCORE'), function(id)
    return redis.pcall('HEXISTS', key('job', id), 'span_first') ~= 1 and id
  end)
end

-- Return the jobs that call back others when they are cancelled, and for which those are not given yet.
local function undecided(ids, called)
  return collect(ids, function(id)
    local job = rows.glance(id, NONE)
    local calls = job and job.state == 'pending' and job.callbacks
    return calls and not (called and called[id]) and pack_standing(id)
  end)
end

local function supersede(id, asked)
  rows.insist(id)
  cancel(id, {reason = asked.superseded, called = asked.called})
end

-- Move schedules on and store the jobs of those that moved; answer with jobs to decide about before the others move.
verb('fire', WRITES, function(asked)
  local applied, left = {}, {}
  for _, firing in ipairs(asked.firings) do
    local row = read_schedule(firing.name)
    if movable(row, firing) then
      local ending = firing.cancels and fired_jobs(firing.name) or {}
      local open = undecided(ending, asked.called)
      for _, standing in ipairs(open) do left[#left + 1] = standing end
      if #open == 0 then
        -- It moves on last: should anything fail, the same occurrence comes up again.
        for _, id in ipairs(ending) do
          rows.with(id, 'live', firing.name, supersede, asked)
        end
        jobs.store_all(firing.jobs)
        audit.add(firing.entries)
        move(row, firing)
        applied[#applied + 1] = firing.name
      end
    end
  end
  return reply({names = applied}, left)
end)

local RUN = {
  'id', 'schedule', 'state', 'occurrence', 'created_at', 'started_at', 'finished_at', 'error', 'reason', 'failure_ttl',
}

-- Return the latest of a list of runs: by occurrence, and of those that were triggered by hand.
local function latest_runs(listed)
  local ids = redis.call('ZRANGE', listed, '+inf', 0, 'BYSCORE', 'REV', 'LIMIT', 0, 1)
  ids[#ids + 1] = redis.call('ZRANGE', listed, BY_HAND, BY_HAND, 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  return ids
end

-- Count how the runs of schedules have ended, in the order asked, and find the latest of each kind.
verb('runs', READS, function(asked)
  local counts, found = {}, {}
  for _, name in ipairs(asked.names) do
    for _, state in ipairs(asked.states) do
      local listed = key(state, name)
      counts[#counts + 1] = math.min(redis.call('ZCARD', listed), asked.most)
      for _, id in ipairs(latest_runs(listed)) do
        local job = rows.glance(id, RUN)
        found[#found + 1] = job and job.schedule and STATES[job.state] and rows.packed(job, RUN) or nil
      end
    end
  end
  return reply({counts = counts}, found)
end)

-- Whether a record stands for what it stood for when it was read.
local function uncut(cut)
  local record = rows.glance(cut.id, {'span_first', 'span_count'})
  return record and record.occurrence == cut.was[2] and (record.span_first or record.occurrence) == cut.was[1]
    and record.span_count == cut.was[3]
end

-- Store jobs for occurrences that have none; the records that are in their way give way, unless one has changed.
verb('backfill', WRITES, function(asked)
  local whole, ids = true, {}
  for _, cut in ipairs(asked.cuts) do whole = whole and uncut(cut) end
  if whole then
    for _, cut in ipairs(asked.cuts) do
      rows.change(cut.id, {span_first = cut.left[1], occurrence = cut.left[2], span_count = cut.left[3]})
    end
    jobs.store_all(asked.jobs)
  end
  for _, new in ipairs(asked.wanted) do
    if jobs.at_occurrence(new[2], new[3]) == new[1] then ids[#ids + 1] = new[1] end
  end
  if whole and #ids > 0 then audit.add({asked.entry}) end
  return reply({whole = whole, ids = ids})
end)

verb('schedules', READS, function(asked)
  local names, last = stretch(key('schedules'), asked)
  return reply({last = last}, pack_schedules(names))
end)

-- What code has declared, in brief.
verb('code_schedules', READS, function(asked)
  local names, last = stretch(key('schedules'), asked)
  return reply({last = last}, collect(names, function(name)
    local row = read_schedule(name)
    return row and row.owner == 'code' and pack_row({name, row.task, row.parked_at and true or false}, 3)
  end))
end)

verb('get_schedules', READS, function(asked)
  return reply({}, pack_schedules(asked.names))
end)

-- Records of a schedule that lie in a stretch of time, and the first one after it, which may stand for some in it, too.
verb('occurrences', READS, function(asked)
  local name = key('occurrences', asked.name)
  local ids = redis.call('ZRANGE', name, asked.after, asked.til, 'BYSCORE', 'LIMIT', 0, asked.most)
  local last
  if #ids == asked.most then
    last = tonumber(redis.call('ZSCORE', name, ids[#ids])) + 1
  else
    ids[#ids + 1] = redis.call('ZRANGE', name, past(asked.til), '+inf', 'BYSCORE', 'LIMIT', 0, 1)[1]
  end
  return reply({last = last}, rows.pack_jobs(ids))
end)

-- Records of a schedule up to an instant, latest first, perhaps without what was skipped.
verb('past_occurrences', READS, function(asked)
  local found, last = {}, nil
  local some = redis.call('ZRANGE', key('occurrences', asked.name), asked.after, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0,
                          asked.most, 'WITHSCORES')
  for place = 1, #some, 2 do
    if not asked.made or redis.pcall('HGET', key('job', some[place]), 'state') ~= 'skipped' then
      found[#found + 1] = rows.pack_job(some[place])
    end
    if #found == asked.limit then break end
  end
  if #some == 2 * asked.most then last = tonumber(some[#some]) - 1 end
  return reply({last = last}, found)
end)
