-- What the scripts on threads share.
--
-- A thread is six keys. In members and fields a NUL stands between the parts, which hold none; so they are told apart
-- and sorted like the parts themselves.
--   checkpoints   hash        namespace, id -> {format, parent, type, checkpoint, metadata, blobs that it rests on}
--   spaces        sorted set  namespace, id
--   order         sorted set  id, namespace
--   blobs         hash        namespace, channel, version -> type, data
--   writes        hash        namespace, id, task, index -> channel, type, task path, data
--   tasks         sorted set  namespace, id, task, index
-- One key more lists every checkpoint: index, a sorted set of id, thread, namespace.

local INDEX = PREFIX .. 'index'
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

-- When the index is gone, all that it lists must be: it lives as long as the thread that lives longest.
local function prolong_index(ttl, now, fresh)
    local left = redis.call('PTTL', INDEX)
    if fresh or (left >= 0 and left < ttl) then
        redis.call('PEXPIREAT', INDEX, string.format('%.0f', now + ttl))
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

-- The id, thread and namespace of a member of the index.
local function entry(member)
    local id, rest = cut(member)
    local thread, ns = cut(rest)
    return id, thread, ns
end

local function is_stale(member)
    local id, thread, ns = entry(member)
    return redis.call('HEXISTS', PREFIX .. 'checkpoints:' .. quoted(thread), ns .. '\0' .. id) == 0
end
