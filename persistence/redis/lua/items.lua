-- What the scripts on items share.
--
-- An item is a hash: number, type, value, created_at, updated_at, and if it has them ttl, expires_at, dims, vectors_type,
-- vectors. Its address is its namespace and key, with a NUL between. Numbers grow with each item that is created.
--   items     sorted set  address, number, with a NUL between: what there is, and in which namespace
--   expiring  sorted set  the same, by the second at which they expire
--   numbers   the number given last
-- Items expire by themselves, their entries in the sets are taken out by whoever writes or sweeps.

local ITEMS, EXPIRING, NUMBERS = PREFIX .. 'items', PREFIX .. 'expiring', PREFIX .. 'numbers'

local function key_of(address)
    return PREFIX .. 'item:' .. quoted(address)
end

-- Fail now if a key is not of its kind.
local function probe()
    redis.call('ZCARD', ITEMS)
    redis.call('ZCARD', EXPIRING)
    redis.call('STRLEN', NUMBERS)
end

-- The entries of an address: one, or more if it expired and was created anew.
local function entries(address)
    return redis.call('ZRANGEBYLEX', ITEMS, '[' .. address .. '\0', '(' .. address .. '\1')
end

-- Take out an entry, and its item if it is still the same.
local function remove(entry)
    redis.call('ZREM', ITEMS, entry)
    redis.call('ZREM', EXPIRING, entry)
    local address, number = string.match(entry, '^(.*)%z([0-9]+)$')
    if redis.call('HGET', key_of(address), 'number') == number then redis.call('UNLINK', key_of(address)) end
end

-- Take out some of what has expired; return how many items that were.
local function sweep(now, most)
    local expired = redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', now, 'LIMIT', 0, most)
    for _, entry in ipairs(expired) do remove(entry) end
    return #expired
end

-- Leave nothing behind when there are no items.
local function tidy()
    if redis.call('ZCARD', ITEMS) == 0 then redis.call('UNLINK', EXPIRING, NUMBERS) end
end
