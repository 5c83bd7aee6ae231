-- Queues: what is set for them.

local queues = {}

local QUEUE = {'paused_at', 'paused_reason', 'most', 'rate_count', 'rate_period', 'starts'}

local QUEUE_TEXTS = {paused_reason = true, starts = true}

function queues.read(name)
  return read_fields(key('queue', name), QUEUE, QUEUE_TEXTS)
end

function queues.paused(name)
  return redis.call('HEXISTS', key('queue', name), 'paused_at') == 1
end

queues.limited = limited

-- Whether jobs are handed out without a question.
function queues.open(name)
  return not queues.paused(name) and not queues.limited(name)
end

function queues.list(name, set)
  redis.call('ZADD', key('queues'), 0, name)
  if set.most or set.rate_count then
    redis.call('ZADD', key('limited'), 0, name)
    rows.list_busy(name)
  else
    leave(name, 'limited')
    redis.call('DEL', key('busy', name))
  end
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
  queues.list(asked.queue, asked)
  return reply({})
end)
