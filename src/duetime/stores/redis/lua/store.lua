-- What a store is.

verb('meta', READS, function()
  local version, store_id, moved = unpack(redis.call('HMGET', key('meta'), 'version', 'store_id', 'moved'))
  return reply({version = tonumber(version or 0), store_id = store_id or '', moved = moved or nil})
end)

-- Note that the work goes on elsewhere, or that it does not.
verb('set_moved', WRITES, function(asked)
  set_field(key('meta'), 'moved', asked.note)
end)

verb('migrate', WRITES, function(asked)
  redis.call('HSETNX', key('meta'), 'store_id', asked.store_id)
  if tonumber(redis.call('HGET', key('meta'), 'version') or 0) < asked.version then
    redis.call('HSET', key('meta'), 'version', asked.version)
  end
end)
