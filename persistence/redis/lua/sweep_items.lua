-- Delete some of what has expired; return how many items that were.

probe()
local swept = sweep(job[1], job[2])
tidy()
return swept
