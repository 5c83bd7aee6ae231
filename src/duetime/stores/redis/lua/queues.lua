-- Queues: what is set for them.

local queues = {}

local QUEUE = {'paused_at', 'paused_reason', 'most', 'rate_count', 'rate_period', 'starts'}

-- Return what is set for a queue, with numbers for numbers.
function queues.read(name)
  local found = {}
  local values = redis.call('HMGET', key('queue', name), unpack(QUEUE))
  for place, column in ipairs(QUEUE) do
    local value = values[place] or nil
    found[column] = (column == 'paused_reason' or column == 'starts') and value or tonumber(value)
  end
  return found
end

function queues.paused(name)
  return redis.call('HEXISTS', key('queue', name), 'paused_at') == 1
end

queues.limited = limited

-- Whether jobs are handed out without a question.
function queues.open(name)
  return not queues.paused(name) and not queues.limited(name)
end

verb('pause_queue', WRITES, function(asked)
  local name = key('queue', asked.queue)
  redis.call('HSETNX', name, 'paused_at', now)
  if asked.reason then
    redis.call('HSET', name, 'paused_reason', asked.reason)
  else
    redis.call('HDEL', name, 'paused_reason')
  end
  redis.call('ZADD', key('queues'), 0, asked.queue)
  return reply({})
end)

verb('resume_queue', WRITES, function(asked)
  redis.call('HDEL', key('queue', asked.queue), 'paused_at', 'paused_reason')
  return reply({})
end)

verb('set_queue_limit', WRITES, function(asked)
  local name = key('queue', asked.queue)
  redis.call('HDEL', name, 'most', 'rate_count', 'rate_period')
  for _, column in ipairs({'most', 'rate_count', 'rate_period'}) do
    if asked[column] then redis.call('HSET', name, column, asked[column]) end
  end
  redis.call('ZADD', key('queues'), 0, asked.queue)
  if asked.most or asked.rate_count then
    redis.call('ZADD', key('limited'), 0, asked.queue)
    rows.list_busy(asked.queue)
  else
    redis.call('ZREM', key('limited'), asked.queue)
    redis.call('DEL', key('busy', asked.queue))
  end
  return reply({})
end)
