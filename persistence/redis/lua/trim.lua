-- Delete checkpoints, and the writes and blobs that none of those left needs: of some threads all but the newest of each
-- namespace, and writes to checkpoints that are not there; and all checkpoints of some runs.

local threads, runs = job[1], job[2]

-- All but the newest of each namespace: a member that the next one shares its namespace with.
local function outdated(keys)
    local found, members = {}, redis.call('ZRANGE', keys.spaces, 0, -1)
    for place = 1, #members - 1 do
        if cut(members[place]) == cut(members[place + 1]) then table.insert(found, members[place]) end
    end
    return found
end

-- The blobs that are needed, and the namespaces in which that cannot be told.
local function needs(keys)
    local needed, spared = {}, {}
    for _, member in ipairs(redis.call('ZRANGE', keys.spaces, 0, -1)) do
        local ns = cut(member)
        local rests = rests_of(redis.call('HGET', keys.checkpoints, member) or '')
        if rests then
            for _, blob in ipairs(rests) do needed[ns .. '\0' .. blob] = true end
        else
            spared[ns] = true
        end
    end
    return needed, spared
end

local function sweep(keys, touched)
    local needed, spared = needs(keys)
    for _, member in ipairs(redis.call('ZRANGE', keys.tasks, 0, -1)) do
        local ns, rest = cut(member)
        if (not touched or touched[ns]) and redis.call('HEXISTS', keys.checkpoints, ns .. '\0' .. cut(rest)) == 0 then
            redis.call('HDEL', keys.writes, member)
            redis.call('ZREM', keys.tasks, member)
        end
    end
    for _, field in ipairs(redis.call('HKEYS', keys.blobs)) do
        local ns = cut(field)
        if (not touched or touched[ns]) and not needed[field] and not spared[ns] then
            redis.call('HDEL', keys.blobs, field)
        end
    end
end

local function drop(thread, keys, members, touched)
    for _, member in ipairs(members) do
        local ns, id = cut(member)
        local value = redis.call('HGET', keys.checkpoints, member)
        if value then
            redis.call('HDEL', keys.checkpoints, member)
            redis.call('ZREM', keys.spaces, member)
            redis.call('ZREM', keys.order, id .. '\0' .. ns)
            unlist(thread, ns, id, value)
            touched[ns] = true
        end
    end
end

probe_lists()
local doomed = {}
for _, run in ipairs(runs) do
    for _, member in ipairs(redis.call('ZRANGEBYLEX', RUNS, '[' .. run .. '\0', '(' .. run .. '\1')) do
        local id, thread, ns = run_entry(member)
        local value = value_of(thread, ns, id)
        -- Its thread may have expired.
        if value and facts_of(value) == run then
            doomed[thread] = doomed[thread] or {}
            table.insert(doomed[thread], ns .. '\0' .. id)
        end
    end
end
for _, thread in ipairs(threads) do probe(keys_of(thread)) end
for thread in pairs(doomed) do probe(keys_of(thread)) end

for _, thread in ipairs(threads) do
    local keys = keys_of(thread)
    drop(thread, keys, outdated(keys), {})
    sweep(keys, false)
end
for thread, members in pairs(doomed) do
    local keys, touched = keys_of(thread), {}
    drop(thread, keys, members, touched)
    sweep(keys, touched)
end
return {}
