-- Delete threads.

for _, thread in ipairs(job) do probe(keys_of(thread)) end
probe_lists()
for _, thread in ipairs(job) do
    local keys = keys_of(thread)
    for _, member in ipairs(redis.call('ZRANGE', keys.order, 0, -1)) do
        local id, ns = cut(member)
        unlist(thread, ns, id, value_of(thread, ns, id))
    end
    for_each_key(keys, function(key) redis.call('UNLINK', key) end)
end
return {}
