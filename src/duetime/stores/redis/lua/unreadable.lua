-- Jobs that were edited by hand: they are left out of lists, and looked at again later, since they may be mended.

local unreadable = {}

-- How long a job that could not be read is left alone.
local LOOK_AGAIN_AFTER = 60 * 1000000

-- Return some of the jobs that were not looked at for a while.
function unreadable.due(most)
  return up_to(key('aside'), now - LOOK_AGAIN_AFTER, most)
end

-- Forget a job that was deleted by hand, wherever it is known to be listed.
local function forget_traces(id)
  for _, name in ipairs({'jobs', 'live', 'unsuccessful', 'gated'}) do rows.unlist(id, name, '') end
  redis.call('DEL', key('attempts', id), key('logs', id))
end

-- List a job again that can be read by now, and forget one that is gone; any other is looked at again later.
local function reconsider(id)
  local job = rows.read(id)
  if job and rows.sound(job) then
    rows.list_anew(id, job)
  elseif redis.call('EXISTS', key('job', id)) == 0 then
    forget_traces(id)
  else
    redis.call('ZADD', key('aside'), now, id)
    return
  end
  rows.unlist(id, 'aside', '')
end

verb('reconsider', FREES, function(asked)
  for _, id in ipairs(unreadable.due(asked.most)) do reconsider(id) end
end)

verb('aside', READS, function()
  return reply({count = redis.call('ZCARD', key('aside')), first = redis.call('ZRANGE', key('aside'), 0, 0)[1]})
end)

-- Pack a job to be shown.
function rows.pack_job(id)
  local job = rows.read_whole(id)
  return job and rows.packed(job, JOB)
end

function rows.pack_jobs(ids)
  return collect(ids, rows.pack_job)
end
