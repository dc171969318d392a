-- Delete checkpoints, and the writes and blobs that none of those left needs. For each thread the checkpoints are named,
-- or it is false: all but the newest of each namespace, and writes to checkpoints that are not there.

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
        local fine, record = pcall(cmsgpack.unpack, redis.call('HGET', keys.checkpoints, member) or '')
        if fine and type(record) == 'table' and type(record[6]) == 'table' then
            for _, blob in ipairs(record[6]) do needed[ns .. '\0' .. blob] = true end
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

for _, each in ipairs(job) do probe(keys_of(each[1])) end
redis.call('ZCARD', INDEX)
for _, each in ipairs(job) do
    local thread, named = each[1], each[2]
    local keys = keys_of(thread)
    local touched = named and {}
    for _, member in ipairs(named or outdated(keys)) do
        if redis.call('HDEL', keys.checkpoints, member) == 1 then
            local ns, id = cut(member)
            redis.call('ZREM', keys.spaces, member)
            redis.call('ZREM', keys.order, id .. '\0' .. ns)
            redis.call('ZREM', INDEX, id .. '\0' .. thread .. '\0' .. ns)
            if touched then touched[ns] = true end
        end
    end
    sweep(keys, touched)
end
return {}
