-- Delete threads.

for _, thread in ipairs(job) do probe(keys_of(thread)) end
redis.call('ZCARD', INDEX)
for _, thread in ipairs(job) do
    local keys = keys_of(thread)
    for _, member in ipairs(redis.call('ZRANGE', keys.order, 0, -1)) do
        local id, ns = cut(member)
        redis.call('ZREM', INDEX, id .. '\0' .. thread .. '\0' .. ns)
    end
    for_each_key(keys, function(key) redis.call('UNLINK', key) end)
end
return {}
