-- What the scripts on cached values share.
--
-- A value is a string by itself. Two sorted sets hold the names: names, and lapsing with those that expire, by the second
-- at which they do. Values expire by themselves, their names are taken out by whoever writes.

local NAMES, LAPSING = PREFIX .. 'names', PREFIX .. 'lapsing'

local function key_of(name)
    return PREFIX .. 'cached:' .. quoted(name)
end

local function remove(name)
    redis.call('ZREM', NAMES, name)
    redis.call('ZREM', LAPSING, name)
    redis.call('UNLINK', key_of(name))
end
