-- Return some fields of the items at some addresses.

local fields, found = job[1], {}
for _, address in ipairs(job[2]) do
    for _, value in ipairs(redis.call('HMGET', key_of(address), unpack(fields))) do found[#found + 1] = value end
end
return {packed(found)}
