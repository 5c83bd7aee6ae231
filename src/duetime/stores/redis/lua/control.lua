-- What people do to jobs.

verb('get', READS, function(asked)
  return reply({}, rows.pack_all(asked.ids, JOB))
end)

-- The same with why their end was asked for.
verb('standing', READS, function(asked)
  local found = {}
  for _, id in ipairs(asked.ids) do
    local row = rows.pack(id, JOB)
    if row then
      found[#found + 1] = '\146' .. row .. cmsgpack.pack(redis.call('HGET', key('job', id), 'cancel_reason') or nil)
    end
  end
  return reply({}, found)
end)
