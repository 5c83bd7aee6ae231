-- What workers are told.

local commands = {}

local COMMAND = {
  'id', 'worker', 'kind', 'job', 'reason', 'created_at', 'taken_at', 'done_at', 'outcome', 'dropped',
}
local COMMAND_NUMBERS = {created_at = true, taken_at = true, done_at = true}

local function pack_commands(ids)
  local packed = {}
  for _, id in ipairs(ids) do
    local values = redis.call('HMGET', key('command', id), unpack(COMMAND))
    if values[1] then
      for place, name in ipairs(COMMAND) do
        values[place] = values[place] and (COMMAND_NUMBERS[name] and tonumber(values[place]) or values[place]) or nil
      end
      values[#COMMAND] = values[#COMMAND] == '1'
      packed[#packed + 1] = pack_row(values, #COMMAND)
    end
  end
  return packed
end

local function answer(id, outcome)
  redis.call('HSET', key('command', id), 'done_at', now, 'outcome', outcome)
  redis.call('ZADD', key('answered'), now, id)
end

-- Give up what a worker that is gone was told.
function commands.drop(worker, reason)
  for _, id in ipairs(redis.call('ZRANGE', key('told', worker), 0, -1)) do
    answer(id, reason)
    redis.call('HSET', key('command', id), 'dropped', 1)
  end
  redis.call('DEL', key('told', worker))
end

function commands.wait(worker)
  return redis.call('EXISTS', key('told', worker)) == 1
end

verb('send', WRITES, function(asked)
  local ids = {}
  for place, new in ipairs(asked.commands) do
    ids[place] = new.id
    local lease = tonumber(redis.call('ZSCORE', key('leases'), new.worker) or -1)
    if lease >= now and redis.call('EXISTS', key('command', new.id)) == 0 then
      local fields = {'created_at', now}
      for name, value in pairs(new) do
        fields[#fields + 1] = name
        fields[#fields + 1] = value
      end
      redis.call('HSET', key('command', new.id), unpack(fields))
      redis.call('ZADD', key('commands', new.worker), now, new.id)
      redis.call('ZADD', key('told', new.worker), now, new.id)
      hint('worker', new.worker)
    end
  end
  return reply({}, pack_commands(ids))
end)

verb('take_commands', WRITES, function(asked)
  local ids = redis.call('ZRANGE', key('told', asked.worker), 0, -1)
  for _, id in ipairs(ids) do redis.call('HSETNX', key('command', id), 'taken_at', now) end
  return reply({}, pack_commands(ids))
end)

verb('finish_command', FREES, function(asked)
  local name = key('command', asked.id)
  local worker = redis.call('HGET', name, 'worker')
  if worker and redis.call('HEXISTS', name, 'done_at') == 0 then
    answer(asked.id, asked.outcome)
    redis.call('ZREM', key('told', worker), asked.id)
  end
  return reply({})
end)

verb('commands', READS, function(asked)
  return reply({}, pack_commands(asked.ids))
end)

verb('commands_of', READS, function(asked)
  return reply({}, pack_commands(redis.call('ZRANGE', key('commands', asked.worker), 0, asked.limit - 1, 'REV')))
end)
