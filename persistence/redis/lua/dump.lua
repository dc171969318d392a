-- Return everything of a thread: its checkpoints, blobs and writes, each field followed by its value.

local keys = keys_of(job)
local all, counts = {}, {}
for place, kind in ipairs({'checkpoints', 'blobs', 'writes'}) do
    local fields = redis.call('HGETALL', keys[kind])
    for _, text in ipairs(fields) do all[#all + 1] = text end
    counts[place] = #fields
end
return {counts[1], counts[2], packed(all)}
