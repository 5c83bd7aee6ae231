-- What there is, under which key. Every key of a namespace carries one hash tag, so that a cluster keeps them together.
--
--   {ns}:meta                     hash   version, store_id, and moved where the work goes on elsewhere
--   {ns}:job:<id>                 hash   a job; a field that is missing is nothing, `line` is queue|priority|task and `claim`
--                                        fence|claim
--   {ns}:attempts:<id>            hash   fence -> a try that did not end the job
--   {ns}:logs:<id>                hash   fence|line -> a part of what its runs have logged
--   {ns}:jobs                     zset   all jobs, by id
--   {ns}:claim:<line>             zset   what can be claimed, by due time; a line is queue|priority|task
--   {ns}:lines                    zset   the lines that are not empty, by name
--   {ns}:aside                    zset   jobs that were edited and cannot be read, by when they were last looked at
--   {ns}:gated                    zset   what waits at gates, by due time
--   {ns}:gate:<place>             zset   what waits at one gate, by due time; a place is task|gate|queue|priority
--   {ns}:places                   zset   the places where something waits, by name
--   {ns}:passed:<gate>            zset   what runs under a gate
--   {ns}:busy:<queue>             zset   what runs of a queue that has a limit
--   {ns}:held:<worker>            set    what a worker has
--   {ns}:holders                  zset   the workers that have something, by name
--   {ns}:live                     zset   what has not ended, by id
--   {ns}:unsuccessful             zset   what ended otherwise than well, by id
--   {ns}:history:<schedule>       zset   the jobs of a schedule, by id
--   {ns}:occurrences:<schedule>   zset   the jobs of a schedule, by occurrence
--   {ns}:live:<schedule>          zset   what it has not finished, by occurrence; 0 for what was triggered by hand
--   {ns}:running:<schedule>       zset   what of it runs
--   {ns}:succeeded:<schedule>     zset   those that went well, by occurrence
--   {ns}:failed:<schedule>        zset   those that failed, by occurrence
--   {ns}:keys                     hash   task|key -> the job that has the key
--   {ns}:worker:<id>              hash   a worker
--   {ns}:workers                  zset   all workers, by when they were started
--   {ns}:worker_ids               zset   the same, by id
--   {ns}:living                   zset   the living ones, by when they were started
--   {ns}:leases                   zset   the same, by the end of their lease
--   {ns}:command:<id>             hash   a command
--   {ns}:commands:<worker>        zset   what a worker was told, by when
--   {ns}:told:<worker>            zset   what of it is not answered yet, by when
--   {ns}:answered                 zset   the commands that are done, by when
--   {ns}:queue:<name>             hash   what is set for a queue
--   {ns}:queues                   zset   the queues that something is set for, by name
--   {ns}:limited                  zset   those that have a limit, by name
--   {ns}:gates                    zset   the gates that are remembered, by name
--   {ns}:gatehouse:<gate>         hash   a gate: its limit and its last starts
--   {ns}:schedule:<name>          hash   a schedule
--   {ns}:schedules                zset   all schedules, by name
--   {ns}:next                     zset   the schedules that fire, by their next time
--   {ns}:until                    zset   those that are paused until a time, by that time
--   {ns}:entry:<id>               hash   something that was done
--   {ns}:entries:<target>         zset   what was done to something, by when
--   {ns}:noted                    zset   all that was done, by when
--   {ns}:entry_ids                zset   the same, by id
--   {ns}:hints                    channel

-- Set for each call: functions run one at a time. The time is there as a text, too: Redis takes longer to write a number
-- down than to store it.
local ns, now, moment

local function key(name, part)
  return part == nil and ns .. ':' .. name or ns .. ':' .. name .. ':' .. part
end

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- `|` is in no name that users give; `}` comes right behind it.
local function joined(...)
  return table.concat({...}, '|')
end

local function within(registry, prefix)
  return redis.call('ZRANGE', key(registry), '[' .. prefix .. '|', '(' .. prefix .. '}', 'BYLEX')
end

-- Behind a score, in the words of a range; what is only joined to a text would lose digits.
local function past(score)
  return string.format('(%d', score)
end

local function set_of(list)
  local set = {}
  for _, each in ipairs(list or {}) do set[each] = true end
  return set
end

-- Return what a function makes of each value of a list, without what it makes nothing of.
local function collect(list, make, ...)
  local made = {}
  for _, each in ipairs(list) do made[#made + 1] = make(each, ...) or nil end
  return made
end

-- Redis hands no more than some thousands of values to one command.
local CHUNK = 5000

local function in_chunks(command, name, values)
  for first = 1, #values, CHUNK do
    redis.call(command, name, unpack(values, first, math.min(first + CHUNK - 1, #values)))
  end
end
