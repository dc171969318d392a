-- Start times to live again, then put and delete items, in order.

local now, refreshes, puts = job[1], job[2], job[3]
local clock = tonumber(now)
local CLEARED = 100 -- expired entries taken out on the way
probe()
for _, list in ipairs({refreshes, puts}) do
    for _, each in ipairs(list) do redis.call('HLEN', key_of(each[1])) end
end
local fresh = redis.call('ZCARD', ITEMS) == 0
local longest, stays = 0, false

local function expires_at(item)
    local text = redis.call('HGET', item, 'expires_at')
    return text and tonumber(text)
end

local function limit(item, entry, at, milliseconds)
    redis.call('ZADD', EXPIRING, at, entry)
    redis.call('PEXPIRE', item, milliseconds)
    longest = math.max(longest, milliseconds)
end

-- Unless it has expired or was put again with another time.
local function prolong(address, number, ttl, at, milliseconds)
    local item = key_of(address)
    local held = redis.call('HMGET', item, 'number', 'ttl')
    if held[1] ~= number or held[2] ~= ttl then return end
    local old = expires_at(item)
    if old > clock and old < tonumber(at) then
        redis.call('HSET', item, 'expires_at', at)
        limit(item, address .. '\0' .. number, at, milliseconds)
    end
end

local function put(address, kind, value, moment, ttl, at, milliseconds, dims, vectors_kind, vectors)
    local item = key_of(address)
    local held = redis.call('HMGET', item, 'number', 'created_at')
    local old = expires_at(item)
    local number, created_at = held[1], held[2]
    if not number or (old and old <= clock) then
        for _, entry in ipairs(entries(address)) do remove(entry) end
        number, created_at = string.format('%.0f', redis.call('INCR', NUMBERS)), moment
    end
    local entry = address .. '\0' .. number
    redis.call('DEL', item)
    redis.call('HSET', item, 'number', number, 'type', kind, 'value', ARGV[VALUES + value])
    redis.call('HSET', item, 'created_at', created_at, 'updated_at', moment)
    redis.call('ZADD', ITEMS, 0, entry)
    if vectors_kind then
        redis.call('HSET', item, 'dims', dims, 'vectors_type', vectors_kind, 'vectors', ARGV[VALUES + vectors])
    end
    if ttl then
        redis.call('HSET', item, 'ttl', ttl, 'expires_at', at)
        limit(item, entry, at, milliseconds)
    else
        redis.call('ZREM', EXPIRING, entry)
        stays = true
    end
end

for _, each in ipairs(refreshes) do prolong(each[1], each[2], each[3], each[4], each[5]) end
for _, each in ipairs(puts) do
    if each[2] then
        put(each[1], each[2], each[3], each[4], each[5], each[6], each[7], each[8], each[9], each[10])
    else
        for _, entry in ipairs(entries(each[1])) do remove(entry) end
        redis.call('UNLINK', key_of(each[1]))
    end
end
sweep(now, CLEARED)
-- When the sets are gone, all items must be: they live as long as the item that lives longest.
for _, key in ipairs({ITEMS, EXPIRING, NUMBERS}) do
    local left = redis.call('PTTL', key)
    if stays then
        if left >= 0 then redis.call('PERSIST', key) end
    elseif longest > 0 and (fresh or (left >= 0 and left < longest)) then
        redis.call('PEXPIRE', key, longest)
    end
end
tidy()
return {}
