-- Keep values, each for so many milliseconds, 0: until it is cleared.

local now, entries = job[1], job[2]
local CLEARED = 100 -- expired names taken out on the way
redis.call('ZCARD', LAPSING)
local fresh = redis.call('ZCARD', NAMES) == 0
local longest, stays = 0, false
for number, each in ipairs(entries) do
    local name, milliseconds, at = each[1], each[2], each[3]
    if milliseconds > 0 then
        redis.call('SET', key_of(name), ARGV[VALUES + number], 'PX', milliseconds)
        redis.call('ZADD', LAPSING, at, name)
        longest = math.max(longest, milliseconds)
    else
        redis.call('SET', key_of(name), ARGV[VALUES + number])
        redis.call('ZREM', LAPSING, name)
        stays = true
    end
    redis.call('ZADD', NAMES, 0, name)
end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', LAPSING, '-inf', now, 'LIMIT', 0, CLEARED)) do remove(name) end
for _, key in ipairs({NAMES, LAPSING}) do
    local left = redis.call('PTTL', key)
    if stays then
        if left >= 0 then redis.call('PERSIST', key) end
    elseif longest > 0 and (fresh or (left >= 0 and left < longest)) then
        redis.call('PEXPIRE', key, longest)
    end
end
return {}
