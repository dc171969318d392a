-- Store rows; if a head is not as expected, nothing: then return which fence it was and what the head is.

local ttl, gives_way, threads, fences, checkpoints = job[1], job[2], job[3], job[4], job[5]
local blobs, writes, upserts = job[6], job[7], job[8]
local keys = {}
for number, thread in ipairs(threads) do
    keys[number] = keys_of(thread)
    probe(keys[number])
end
local fresh = {[INDEX] = redis.call('ZCARD', INDEX) == 0, [RUNS] = redis.call('ZCARD', RUNS) == 0}

-- Bytes, not words: the comparison of strings follows the server's locale.
local function follows(left, right)
    for place = 1, math.max(#left, #right) do
        local one, other = string.byte(left, place) or -1, string.byte(right, place) or -1
        if one ~= other then return one > other end
    end
    return false
end

for number, fence in ipairs(fences) do
    local own, ns, id, expected, before = keys[fence[1]], fence[2], fence[3], fence[4], fence[5]
    local newest = redis.call('ZREVRANGEBYLEX', own.spaces, '(' .. ns .. '\1', '[' .. ns .. '\0', 'LIMIT', 0, 1)
    local head = newest[1] and string.sub(newest[1], #ns + 2) or ''
    if before ~= '' and follows(before, head) then head = before end
    local function holds(field)
        return redis.call('HEXISTS', own.checkpoints, field) == 1
    end
    -- What is stored is tried again, after an answer that was lost: it needs nothing to rest on any more.
    if head ~= expected and not holds(ns .. '\0' .. id) and not (fence[6] and holds(fence[6])) then
        return {number, head}
    end
end

for _, row in ipairs(checkpoints) do
    local own, value = keys[row[1]], ARGV[VALUES + row[6]]
    local old = redis.call('HGET', own.checkpoints, row[2])
    if not old or not gives_way then
        if old then
            local id, thread, ns = entry(row[4])
            unlist(thread, ns, id, old)
        end
        redis.call('HSET', own.checkpoints, row[2], value)
        redis.call('ZADD', own.spaces, 0, row[2])
        redis.call('ZADD', own.order, 0, row[3])
        redis.call('ZADD', INDEX, 0, row[4])
        if row[5] then redis.call('ZADD', RUNS, 0, row[5]) end
    end
end
for _, row in ipairs(blobs) do
    redis.call('HSETNX', keys[row[1]].blobs, row[2], ARGV[VALUES + row[3]])
end
for _, row in ipairs(writes) do
    local own = keys[row[1]]
    if redis.call('HSETNX', own.writes, row[2], ARGV[VALUES + row[3]]) == 1 then redis.call('ZADD', own.tasks, 0, row[2]) end
end
for _, row in ipairs(upserts) do
    local own = keys[row[1]]
    redis.call('HSET', own.writes, row[2], ARGV[VALUES + row[3]])
    redis.call('ZADD', own.tasks, 0, row[2])
end

local now = milliseconds()
for _, own in ipairs(keys) do set_lifetime(own, ttl, now) end
if ttl == 0 then
    for _, list in ipairs({INDEX, RUNS}) do
        if redis.call('PTTL', list) >= 0 then redis.call('PERSIST', list) end
    end
    return {}
end

local function is_stale(list, member)
    local id, thread, ns
    if list == INDEX then
        id, thread, ns = entry(member)
    else
        id, thread, ns = run_entry(member)
    end
    return redis.call('HEXISTS', PREFIX .. 'checkpoints:' .. quoted(thread), ns .. '\0' .. id) == 0
end

-- Threads expire by themselves, their entries do not: look at some, wherever, more than were added.
for _, list in ipairs({INDEX, RUNS}) do
    prolong_list(list, ttl, now, fresh[list])
    local size = redis.call('ZCARD', list)
    local first = size > 0 and now % size or 0
    for _, member in ipairs(redis.call('ZRANGE', list, first, first + 4 * #checkpoints + 4)) do
        if is_stale(list, member) then redis.call('ZREM', list, member) end
    end
end
return {}
