-- What a store is.

verb('meta', READS, function()
  local version, store_id = unpack(redis.call('HMGET', key('meta'), 'version', 'store_id'))
  return reply({version = tonumber(version or 0), store_id = store_id or '', aside = redis.call('ZCARD', key('aside'))})
end)

verb('migrate', WRITES, function(asked)
  redis.call('HSETNX', key('meta'), 'store_id', asked.store_id)
  if tonumber(redis.call('HGET', key('meta'), 'version') or 0) < asked.version then
    redis.call('HSET', key('meta'), 'version', asked.version)
  end
  return reply({})
end)
