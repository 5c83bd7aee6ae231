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
end)

-- Return the parts of the logs of a job, each packed as fence, line, and what else there is of it.
function reports.packed_logs(id)
  local packed = {}
  for name, part in pairs(read_hash(key('logs', id)) or NONE) do
    local fence, line = string.match(name, '^(%d+)|(%d+)$')
    packed[#packed + 1] = '\147' .. cmsgpack.pack(tonumber(fence), tonumber(line)) .. part
  end
  return packed
end

verb('logs', READS, function(asked)
  return reply({}, reports.packed_logs(asked.id))
end)

verb('attempts', READS, function(asked)
  return reply({}, redis.call('HVALS', key('attempts', asked.id)))
end)
