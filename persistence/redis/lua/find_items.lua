-- Return the entries between pairs of bounds that have not expired.

local now, ranges = job[1], job[2]
local expired, found = {}, {}
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', now)) do expired[entry] = true end
for _, range in ipairs(ranges) do
    for _, entry in ipairs(redis.call('ZRANGEBYLEX', ITEMS, range[1], range[2])) do
        if not expired[entry] then found[#found + 1] = entry end
    end
end
return {packed(found)}
