-- Whole records, for a copy to another store.

-- The other kinds of records than jobs: the hash of each, how its key is added to indexes, which it leaves, and what else
-- is removed with it.
local nouns = {
  queues = {hash = 'queue', list = queues.list, leaves = {'queues', 'limited'}},
  gates = {hash = 'gatehouse', leaves = {'gates'}},
  workers = {hash = 'worker', index = 'worker_ids', leaves = {'workers', 'worker_ids', 'living', 'leases'}},
  schedules = {hash = 'schedule', leaves = {'schedules', 'next', 'until'}},
  audit = {hash = 'entry', index = 'entry_ids', list = audit.list, leaves = NONE, remove = audit.unlist},
  statistics = {hash = 'statistic', index = 'statistic_ids', list = statistics.list, leaves = NONE, remove = statistics.unlist},
}

function nouns.queues.remove(id)
  redis.call('DEL', key('busy', id))
end

function nouns.gates.list(id)
  redis.call('ZADD', key('gates'), 0, id)
end

function nouns.workers.list(id, row, told)
  workers.list(id, row)
  for _, command in ipairs(told) do
    write(key('command', command.id), command, NONE)
    redis.call('ZADD', key('commands', id), command.created_at, command.id)
    redis.call('ZADD', command.done_at and key('answered') or key('told', id), command.done_at or command.created_at,
               command.id)
  end
end

function nouns.workers.remove(id)
  for _, command in ipairs(members('commands', id)) do
    leave(command, 'answered')
    redis.call('DEL', key('command', command))
  end
  redis.call('DEL', key('commands', id), key('told', id))
end

function nouns.schedules.list(id, row)
  redis.call('ZADD', key('schedules'), 0, id)
  write_schedule(id, {}, row)
end

local function index_of(kind)
  return key(nouns[kind] and nouns[kind].index or kind)
end

local function pack_fields(name, columns)
  local values = redis.call('HMGET', name, unpack(columns))
  for place in ipairs(columns) do values[place] = values[place] or nil end
  return pack_row(values, #columns)
end

local function pack_list(packed)
  return array(#packed) .. table.concat(packed)
end

local function pack_told(worker, columns)
  local ids = columns and members('commands', worker) or NONE
  return pack_list(collect(ids, function(id) return pack_fields(key('command', id), columns) end))
end

local function pack_job(id, columns, broken)
  local job = rows.read(id)
  if job and not rows.sound(job) then broken[#broken + 1] = id end
  return job and '\147' .. rows.packed(job, columns) .. pack_list(redis.call('HVALS', key('attempts', id))) .. pack_list(reports.packed_logs(id))
end

-- Pack records: a job with its tries and its logs, any other with its key before its fields, and what it was told. Tell
-- which jobs cannot be read.
local function pack_records(ids, asked)
  local packed, broken = {}, {}
  for _, id in ipairs(ids) do
    if asked.kind == 'jobs' then
      packed[#packed + 1] = pack_job(id, asked.columns, broken)
    else
      packed[#packed + 1] = '\147' .. cmsgpack.pack(id) .. pack_fields(key(nouns[asked.kind].hash, id), asked.columns)
        .. pack_told(id, asked.told)
    end
  end
  return packed, broken
end

verb('stretch', READS, function(asked)
  local ids = redis.call('ZRANGE', index_of(asked.kind), '(' .. asked.after, '[' .. asked.till, 'BYLEX', 'LIMIT', 0,
                         asked.most)
  local packed, broken = pack_records(ids, asked)
  return reply({last = #ids == asked.most and ids[#ids] or nil, broken = broken}, packed)
end)

local function remove(kind, id)
  local noun = nouns[kind]
  if noun then
    if noun.remove then noun.remove(id) end
    leave(id, unpack(noun.leaves))
    redis.call('DEL', key(noun.hash, id))
  elseif rows.read(id) then
    rows.remove(id)
  end
end

local function store_job(record)
  local id = record.row.id
  rows.add(record.row)
  for _, try in ipairs(record.tries) do redis.call('HSET', key('attempts', id), try[2], pack_row(try, #ATTEMPT)) end
  for _, log in ipairs(record.logs) do
    redis.call('HSET', key('logs', id), joined(log[1], log[2]), pack_row({log[3], log[4]}, 2))
  end
end

-- Remove records and store others; one that is there stays.
verb('exchange', WRITES, function(asked)
  local kind = asked.kind
  for _, id in ipairs(asked.gone) do remove(kind, id) end
  rows.flush()
  for _, record in ipairs(asked.records) do
    local there = redis.call('ZSCORE', index_of(kind), record.key)
    if not there and kind == 'jobs' then
      store_job(record)
    elseif not there then
      write(key(nouns[kind].hash, record.key), record.row, NONE)
      nouns[kind].list(record.key, record.row, record.told)
    end
  end
end)
