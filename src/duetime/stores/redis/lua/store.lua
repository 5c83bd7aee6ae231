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

-- Name some of the keys of the namespace, and tell where to look on.
verb('key_names', READS, function(asked)
  local last, names = unpack(redis.call('SCAN', asked.after, 'MATCH', ns .. ':*', 'COUNT', asked.most))
  return reply({last = last ~= '0' and last or nil, names = names})
end)

verb('drop_keys', FREES, function(asked)
  for _, name in ipairs(asked.names) do redis.call('UNLINK', name) end
end)
