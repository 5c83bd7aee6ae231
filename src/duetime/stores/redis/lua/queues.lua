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

-- Write the limits of a queue, or of a gate.
function queues.write_limits(name, limits)
  for _, column in ipairs({'most', 'rate_count', 'rate_period'}) do set_field(name, column, limits[column]) end
end

verb('pause_queue', WRITES, function(asked)
  local name = key('queue', asked.queue)
  redis.call('HSETNX', name, 'paused_at', now)
  set_field(name, 'paused_reason', asked.reason)
  redis.call('ZADD', key('queues'), 0, asked.queue)
  audit.add({asked.entry})
end)

verb('resume_queue', WRITES, function(asked)
  local paused = redis.call('HDEL', key('queue', asked.queue), 'paused_at', 'paused_reason') > 0
  if paused then audit.add({asked.entry}) end
end)

verb('set_queue_limit', WRITES, function(asked)
  queues.write_limits(key('queue', asked.queue), asked)
  queues.list(asked.queue, asked)
  audit.add({asked.entry})
end)
