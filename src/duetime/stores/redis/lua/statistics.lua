-- Figures over time: parts that workers have written, and the rows that these are merged into.

local statistics = {}

function statistics.list(id, row)
  redis.call('ZADD', key('statistic_ids'), 0, id)
  redis.call('ZADD', key('statistic_starts', row.grain), row.start, id)
end

function statistics.unlist(id)
  local grain = redis.call('HGET', key('statistic', id), 'grain')
  if grain then redis.call('ZREM', key('statistic_starts', grain), id) end
  leave(id, 'statistic_ids')
end

function statistics.remove(id)
  statistics.unlist(id)
  redis.call('DEL', key('statistic', id))
end

function statistics.put(row)
  redis.call('HSET', key('statistic', row.id), 'kind', row.kind, 'grain', row.grain, 'name', row.name,
             'start', string.format('%d', row.start), 'body', row.body)
  statistics.list(row.id, row)
end

function statistics.folds()
  return tonumber(redis.call('HGET', key('meta'), 'folds') or 0)
end

function statistics.packed(id)
  local body = redis.call('HGET', key('statistic', id), 'body')
  return body and pack_row({id, body}, 2)
end

function statistics.parts(most)
  return collect(redis.call('ZRANGE', key('statistic_starts', 'p'), 0, most - 1), statistics.packed)
end

-- A part that is there, merged or not, stays as it is.
verb('add_statistics', WRITES, function(asked)
  for _, row in ipairs(asked.rows) do
    if redis.call('EXISTS', key('statistic', row.id)) == 0 then statistics.put(row) end
  end
end)

verb('statistics_parts', READS, function(asked)
  return reply({folds = statistics.folds()}, statistics.parts(asked.limit))
end)

verb('statistics_rows', READS, function(asked)
  return reply({}, collect(asked.ids, statistics.packed))
end)

verb('fold_statistics', WRITES, function(asked)
  if statistics.folds() ~= asked.folds then return reply({done = false}) end
  redis.call('HINCRBY', key('meta'), 'folds', 1)
  for _, id in ipairs(asked.parts) do
    local start = redis.call('HGET', key('statistic', id), 'start')
    redis.call('HSET', key('statistic', id), 'grain', 'o', 'body', '')
    redis.call('ZREM', key('statistic_starts', 'p'), id)
    redis.call('ZADD', key('statistic_starts', 'o'), start, id)
  end
  for _, row in ipairs(asked.rows) do statistics.put(row) end
  return reply({done = true})
end)

verb('statistics', READS, function(asked)
  local found = statistics.parts(0)
  local count = #found
  for _, range in ipairs(asked.ranges) do
    local ids = redis.call('ZRANGE', key('statistic_ids'), '[' .. range[1], '(' .. range[2], 'BYLEX')
    for _, row in ipairs(collect(ids, statistics.packed)) do found[#found + 1] = row end
  end
  return reply({parts = count}, found)
end)

verb('prune_statistics', FREES, function(asked)
  local more = false
  for grain, before in pairs(asked.ends) do
    local old = up_to(key('statistic_starts', grain), past(before), asked.most)
    for _, id in ipairs(old) do statistics.remove(id) end
    more = more or #old == asked.most
  end
  return reply({more = more})
end)
