-- Leases and rescue.

local workers = {}

-- Whether a worker lives: until it is marked as stopped or dead, even after its lease has ended.
function workers.alive(id)
  return redis.call('ZSCORE', key('leases'), id) and true or false
end

local function renew(id, lease)
  redis.call('HSET', key('worker', id), 'beat_at', now, 'lease_until', now + lease)
  redis.call('ZADD', key('leases'), now + lease, id)
end

-- End the life of a worker, and drop its commands.
local function end_life(id, state, reason)
  leave(id, 'leases', 'living')
  redis.call('HSET', key('worker', id), 'state', state)
  commands.drop(id, reason)
end

-- Mark workers as dead, and return those that were alive until now.
local function bury(ids)
  return collect(ids, function(id)
    if not workers.alive(id) then return nil end
    end_life(id, 'dead', 'the worker died before it answered')
    return id
  end)
end

local function expired(most)
  return up_to(key('leases'), '(' .. moment, most)
end

-- Return the workers that have jobs and do not live.
local function forsaken()
  return collect(members('holders'), function(id) return not workers.alive(id) and id end)
end

-- Whether there is anything to rescue.
function workers.orphans()
  return #expired(1) > 0 or #forsaken() > 0
end

function workers.list(id, row)
  redis.call('ZADD', key('workers'), row.started_at, id)
  redis.call('ZADD', key('worker_ids'), 0, id)
  if row.state == 'alive' then
    redis.call('ZADD', key('leases'), row.lease_until, id)
    redis.call('ZADD', key('living'), row.started_at, id)
  end
end

-- None is added where the work goes on elsewhere.
verb('register', WRITES, function(asked)
  local id, moved = asked.worker.id, redis.call('HGET', key('meta'), 'moved')
  if moved then return reply({moved = moved}) end
  if redis.call('EXISTS', key('worker', id)) == 0 then
    local row = asked.worker
    row.state, row.started_at, row.beat_at, row.lease_until = 'alive', now, now, now + asked.lease
    write(key('worker', id), row, NONE)
    workers.list(id, row)
  elseif workers.alive(id) then
    renew(id, asked.lease)
  end
end)

-- Renew the lease of a worker that lives, and note how it is.
function workers.beat(id, lease, stats)
  local dropped = set_of({'last_error', 'paused_at', 'paused_reason'})
  for name in pairs(dropped) do stats[name] = stats[name] or false end
  write(key('worker', id), stats, dropped)
  renew(id, lease)
end

-- Tell when the first lease ends of the workers other than this one.
function workers.first_end(id)
  local first = redis.call('ZRANGE', key('leases'), 0, 1, 'WITHSCORES')
  if first[1] == id then return tonumber(first[4]) end
  return tonumber(first[2])
end

-- Tell when the last of the living workers was started.
function workers.newest()
  return tonumber(redis.call('ZRANGE', key('living'), -1, -1, 'WITHSCORES')[2]) or 0
end

-- Tell until when a worker is to note what it does.
function workers.watched_until(id)
  return tonumber(redis.call('HGET', key('worker', id), 'watched_until') or nil)
end

verb('retire', FREES, function(asked)
  if workers.alive(asked.worker) then
    end_life(asked.worker, 'stopped', 'the worker stopped before it answered')
    redis.call('HSET', key('worker', asked.worker), 'lease_until', now, 'running', 0)
  end
end)

verb('bury', FREES, function(asked)
  return reply({dead = bury(asked.workers)})
end)

verb('peers', READS, function(asked)
  local found = {}
  local leases = redis.call('ZRANGE', key('leases'), 0, -1, 'WITHSCORES')
  for place = 1, #leases, 2 do
    local id, left = leases[place], tonumber(leases[place + 1]) - now
    local host_key, pid, started = unpack(redis.call('HMGET', key('worker', id), 'host_key', 'pid', 'pid_started'))
    local near = host_key and host_key == asked.host_key
    if id ~= asked.worker and (near or left < asked.soon) then
      found[#found + 1] = pack_row({id, tonumber(pid), started or nil, near or false, left}, 5)
    end
  end
  return reply({}, found)
end)

verb('forsaken', READS, function()
  return reply({orphans = workers.orphans(), aside = #unreadable.due(1) > 0})
end)

-- The tasks that workers have announced: in one hash, by name.
local TASK = {'name', 'queue', 'options', 'schema', 'announced_at'}

verb('announce', WRITES, function(asked)
  for _, task in ipairs(asked.tasks) do
    task.announced_at = now
    redis.call('HSET', key('tasks'), task.name, cmsgpack.pack(task))
  end
end)

verb('announced', READS, function(asked)
  local names = asked.names or redis.call('HKEYS', key('tasks'))
  table.sort(names)
  return reply({}, collect(names, function(name)
    local packed = redis.call('HGET', key('tasks'), name)
    return packed and rows.packed(cmsgpack.unpack(packed), TASK)
  end))
end)

-- Forget tasks that no worker has announced for long.
function workers.prune_tasks(before)
  for _, name in ipairs(redis.call('HKEYS', key('tasks'))) do
    if cmsgpack.unpack(redis.call('HGET', key('tasks'), name)).announced_at < before then
      redis.call('HDEL', key('tasks'), name)
    end
  end
end

-- Take a job over under a new fence; return its claim with who had it, and since when it had run.
local function adopt(id, asked, worker)
  local job = rows.insist(id)
  if job.state ~= 'running' then return rows.unlist(id, 'held', worker) end
  local change = {fence = job.fence + 1, claim_id = asked.claim_id, worker = asked.worker}
  rows.change(id, change, job)
  local words = {rows.claim_words(job, change.fence)}
  words[7], words[8] = job.worker or '', job.started_at or nil
  return pack_row(words, 8)
end

-- Mark workers dead whose lease is over, and take over what workers that do not live have: at most `most` jobs, or all of one
-- worker, since all that it left decides which job is to blame. Tell whether there is more.
verb('rescue', FREES, function(asked)
  local facts, adopted = {claim_id = asked.claim_id, dead = bury(expired(1000)), more = false}, {}
  for _, worker in ipairs(workers.alive(asked.worker) and forsaken() or {}) do
    local held = rows.held(worker)
    facts.more = #adopted > 0 and #adopted + #held > asked.most
    if facts.more then break end
    for _, id in ipairs(held) do
      adopted[#adopted + 1] = rows.with(id, 'held', worker, adopt, asked, worker)
    end
  end
  return reply(facts, adopted)
end)
