-- Store rows; if a head is not as expected, nothing: then return which fence it was and what the head is.

local ttl, gives_way, threads, fences, checkpoints = job[1], job[2], job[3], job[4], job[5]
local blobs, writes, upserts = job[6], job[7], job[8]
local keys = {}
for number, thread in ipairs(threads) do
    keys[number] = keys_of(thread)
    probe(keys[number])
end
local fresh = redis.call('ZCARD', INDEX) == 0

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
    if head ~= expected and redis.call('HEXISTS', own.checkpoints, ns .. '\0' .. id) == 0 then
        return {number, head}
    end
end

for _, row in ipairs(checkpoints) do
    local own = keys[row[1]]
    local put = gives_way and 'HSETNX' or 'HSET'
    if redis.call(put, own.checkpoints, row[2], ARGV[VALUES + row[5]]) == 1 or not gives_way then
        redis.call('ZADD', own.spaces, 0, row[2])
        redis.call('ZADD', own.order, 0, row[3])
        redis.call('ZADD', INDEX, 0, row[4])
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
    if redis.call('PTTL', INDEX) >= 0 then redis.call('PERSIST', INDEX) end
    return {}
end
prolong_index(ttl, now, fresh)
-- Threads expire by themselves, their entries do not: look at some, wherever, more than were added.
local size = redis.call('ZCARD', INDEX)
if size > 0 then
    local first = now % size
    for _, member in ipairs(redis.call('ZRANGE', INDEX, first, first + 4 * #checkpoints + 4)) do
        if is_stale(member) then redis.call('ZREM', INDEX, member) end
    end
end
return {}
