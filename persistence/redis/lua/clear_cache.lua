-- Forget some of the values whose names lie between two bounds; return how many that were.

redis.call('ZCARD', LAPSING)
local names = redis.call('ZRANGEBYLEX', NAMES, job[1], job[2], 'LIMIT', 0, job[3])
for _, name in ipairs(names) do remove(name) end
return #names
