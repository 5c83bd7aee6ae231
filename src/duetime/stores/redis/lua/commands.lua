-- What workers are told.

local commands = {}

local COMMAND = {
  'id', 'worker', 'kind', 'job', 'reason', 'created_at', 'taken_at', 'done_at', 'outcome', 'dropped',
}
local COMMAND_NUMBERS = {created_at = true, taken_at = true, done_at = true}

local function pack_command(id)
  local values = redis.call('HMGET', key('command', id), unpack(COMMAND))
  if not values[1] then return nil end
  for place, name in ipairs(COMMAND) do
    values[place] = COMMAND_NUMBERS[name] and tonumber(values[place]) or values[place] or nil
  end
  values[#COMMAND] = values[#COMMAND] == '1'
  return pack_row(values, #COMMAND)
end

local function answer(id, outcome)
  redis.call('HSET', key('command', id), 'done_at', now, 'outcome', outcome)
  redis.call('ZADD', key('answered'), now, id)
end

-- Give up what a worker that is gone was told.
function commands.drop(worker, reason)
  for _, id in ipairs(members('told', worker)) do
    answer(id, reason)
    redis.call('HSET', key('command', id), 'dropped', 1)
  end
  redis.call('DEL', key('told', worker))
end

function commands.wait(worker)
  return redis.call('EXISTS', key('told', worker)) == 1
end

verb('send', WRITES, function(asked)
  for _, new in ipairs(asked.commands) do
    local lease = tonumber(redis.call('ZSCORE', key('leases'), new.worker) or -1)
    if lease >= now and redis.call('EXISTS', key('command', new.id)) == 0 then
      new.created_at = now
      write(key('command', new.id), new, NONE)
      redis.call('ZADD', key('commands', new.worker), now, new.id)
      redis.call('ZADD', key('told', new.worker), now, new.id)
      audit.add_of(asked, new.id)
      hint('worker', new.worker)
    end
  end
  return reply({}, collect(asked.commands, function(new) return pack_command(new.id) end))
end)

verb('take_commands', WRITES, function(asked)
  local ids = members('told', asked.worker)
  for _, id in ipairs(ids) do redis.call('HSETNX', key('command', id), 'taken_at', now) end
  return reply({}, collect(ids, pack_command))
end)

verb('finish_command', FREES, function(asked)
  local name = key('command', asked.id)
  local worker = redis.call('HGET', name, 'worker')
  if worker and redis.call('HEXISTS', name, 'done_at') == 0 then
    answer(asked.id, asked.outcome)
    redis.call('ZREM', key('told', worker), asked.id)
  end
end)

verb('commands', READS, function(asked)
  return reply({}, collect(asked.ids, pack_command))
end)

verb('commands_of', READS, function(asked)
  local ids = redis.call('ZRANGE', key('commands', asked.worker), 0, asked.limit - 1, 'REV')
  return reply({}, collect(ids, pack_command))
end)
