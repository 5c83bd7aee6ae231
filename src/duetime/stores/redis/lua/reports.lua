-- What runs say while they run.

-- Tell how far a run is, if its claim holds.
function reports.progress(said)
  if settling.standing(said) == 'running' then rows.note_progress(said.id, said.fraction, said.note) end
end

-- Keep what runs have logged. A claim that has just been settled is still its own: its last part comes then.
function reports.log(parts)
  for _, part in ipairs(parts or {}) do
    if settling.standing(part) then
      local name = key('logs', part.id)
      redis.call('HSETNX', name, joined(part.fence, part.line), pack_row({part.attempt, part.text}, 2))
      if part.first then
        for line = part.first, part.past - 1 do redis.call('HDEL', name, joined(part.fence, line)) end
      end
    end
  end
end

verb('report', WRITES, function(asked)
  for _, said in ipairs(asked.progress) do reports.progress(said) end
  reports.log(asked.logs)
  return reply({})
end)

verb('logs', READS, function(asked)
  local found = {}
  local parts = redis.call('HGETALL', key('logs', asked.id))
  for place = 1, #parts, 2 do
    local fence, line = string.match(parts[place], '^(%d+)|(%d+)$')
    found[#found + 1] = '\147' .. cmsgpack.pack(tonumber(fence), tonumber(line)) .. parts[place + 1]
  end
  return reply({}, found)
end)

verb('attempts', READS, function(asked)
  return reply({}, redis.call('HVALS', key('attempts', asked.id)))
end)
