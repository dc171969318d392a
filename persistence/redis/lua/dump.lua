-- Return everything of a thread: its checkpoints, blobs and writes, each field with its value.

local keys = keys_of(job)
return {
    redis.call('HGETALL', keys.checkpoints),
    redis.call('HGETALL', keys.blobs),
    redis.call('HGETALL', keys.writes),
}
