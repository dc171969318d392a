-- Return the entries between pairs of bounds that have not expired, those of each pair by itself.

local now, ranges = job[1], job[2]
local expired = {}
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', now)) do expired[entry] = true end
local found = {}
for number, range in ipairs(ranges) do
    local alive = {}
    for _, entry in ipairs(redis.call('ZRANGEBYLEX', ITEMS, range[1], range[2])) do
        if not expired[entry] then table.insert(alive, entry) end
    end
    found[number] = alive
end
return found
