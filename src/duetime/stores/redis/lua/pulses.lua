-- Heartbeats, and what they see on their way.

local HELD = {'id', 'fence', 'claim_id', 'cancel_requested_at'}

local function held_by(worker)
  return collect(rows.held(worker), function(id)
    local job = rows.glance(id, HELD)
    return job and rows.packed(job, HELD)
  end)
end

verb('pulse', FREES, function(asked)
  local worker = asked.worker
  if not workers.alive(worker) then return reply({alive = false}) end
  workers.beat(worker, asked.lease, asked.stats)
  local facts = {
    alive = true, commands = commands.wait(worker), limited = next_due.limited(),
    workers = redis.call('ZCARD', key('leases')), newest = workers.newest(),
    lease_ends = workers.first_end(worker), watched_until = workers.watched_until(worker),
  }
  if asked.wants then
    facts.due_at = next_due.job(asked.wants.queues, set_of(asked.wants.tasks))
    facts.orphans = asked.wants.orphans and (workers.orphans() or #unreadable.due(1) > 0)
    if asked.wants.schedules then
      facts.fires_at, facts.resumes_at = first_score(key('next')), first_score(key('until'))
    end
  end
  return reply(facts, held_by(worker))
end)

verb('attend', READS, function(asked)
  if not workers.alive(asked.worker) then return reply({alive = false}) end
  local facts = {alive = true, commands = commands.wait(asked.worker), watched_until = workers.watched_until(asked.worker)}
  return reply(facts, held_by(asked.worker))
end)
