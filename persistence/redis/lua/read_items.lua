-- Return some fields of the items at some addresses.

local fields, found = job[1], {}
for number, address in ipairs(job[2]) do
    found[number] = redis.call('HMGET', key_of(address), unpack(fields))
end
return found
