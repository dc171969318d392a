-- Return the values of some names.

local found = {}
for number, name in ipairs(job) do found[number] = redis.call('GET', key_of(name)) end
return {packed(found)}
