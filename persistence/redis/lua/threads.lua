-- What the scripts on threads share.
--
-- A thread is six keys. In members and fields a NUL stands between the parts, which hold none; so they are told apart
-- and sorted like the parts themselves.
--   checkpoints   hash        namespace, id -> run, metadata, {format, parent, type, checkpoint, blobs that it rests on}
--   spaces        sorted set  namespace, id
--   order         sorted set  id, namespace
--   blobs         hash        namespace, channel, version -> type, data
--   writes        hash        namespace, id, task, index -> channel, type, task path, data
--   tasks         sorted set  namespace, id, task, index
-- Two more list the checkpoints of all threads: index, a sorted set of id, thread, namespace; and runs, a sorted set of
-- run, thread, namespace, id.

local INDEX, RUNS = PREFIX .. 'index', PREFIX .. 'runs'
local HASHES = {'checkpoints', 'blobs', 'writes'}
local SETS = {'spaces', 'order', 'tasks'}

local function keys_of(thread)
    local suffix = ':' .. quoted(thread)
    local keys = {}
    for _, kind in ipairs(HASHES) do keys[kind] = PREFIX .. kind .. suffix end
    for _, kind in ipairs(SETS) do keys[kind] = PREFIX .. kind .. suffix end
    return keys
end

-- Fail now if a key is not of its kind.
local function probe(keys)
    for _, kind in ipairs(HASHES) do redis.call('HLEN', keys[kind]) end
    for _, kind in ipairs(SETS) do redis.call('ZCARD', keys[kind]) end
end

-- The first part of a member or field, and what follows it.
local function cut(text)
    local at = string.find(text, '\0', 1, true)
    return string.sub(text, 1, at - 1), string.sub(text, at + 1)
end

local function milliseconds()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function for_each_key(keys, call)
    for _, key in pairs(keys) do call(key) end
end

-- When a list is gone, all that is in it must be: it lives as long as the thread that lives longest.
local function prolong_list(list, ttl, now, fresh)
    local left = redis.call('PTTL', list)
    if fresh or (left >= 0 and left < ttl) then
        redis.call('PEXPIREAT', list, string.format('%.0f', now + ttl))
    end
end

-- Start the time to live of a thread again; 0: it stays.
local function set_lifetime(keys, ttl, now)
    if ttl > 0 then
        local at = string.format('%.0f', now + ttl)
        for_each_key(keys, function(key) redis.call('PEXPIREAT', key, at) end)
    elseif redis.call('PTTL', keys.checkpoints) >= 0 or redis.call('PTTL', keys.tasks) >= 0 then
        for_each_key(keys, function(key) redis.call('PERSIST', key) end)
    end
end

-- The run of a checkpoint's value, its metadata, and where the rest begins; nothing if it is damaged.
local function facts_of(value)
    local first = string.find(value, '\0', 1, true)
    local second = first and string.find(value, '\0', first + 1, true)
    if second then return string.sub(value, 1, first - 1), string.sub(value, first + 1, second - 1), second + 1 end
end

-- The blobs that a checkpoint rests on, each a channel and a version; nothing if that cannot be told.
local function rests_of(value)
    local _, _, start = facts_of(value)
    if not start then return nil end
    local fine, record = pcall(cmsgpack.unpack, string.sub(value, start))
    return fine and type(record) == 'table' and type(record[5]) == 'table' and record[5] or nil
end

-- Take a checkpoint out of the lists of all threads.
local function unlist(thread, ns, id, value)
    redis.call('ZREM', INDEX, id .. '\0' .. thread .. '\0' .. ns)
    local run = value and facts_of(value)
    if run and run ~= '' then redis.call('ZREM', RUNS, run .. '\0' .. thread .. '\0' .. ns .. '\0' .. id) end
end

local function value_of(thread, ns, id)
    return redis.call('HGET', PREFIX .. 'checkpoints:' .. quoted(thread), ns .. '\0' .. id)
end

-- The id, thread and namespace of a member of the index.
local function entry(member)
    local id, rest = cut(member)
    local thread, ns = cut(rest)
    return id, thread, ns
end

-- The same of a member of the runs.
local function run_entry(member)
    local _, rest = cut(member)
    local thread, place = cut(rest)
    local ns, id = cut(place)
    return id, thread, ns
end

local function probe_lists()
    redis.call('ZCARD', INDEX)
    redis.call('ZCARD', RUNS)
end
