-- Arguments: the number of hosts, and the first one. Each request is for another host: from h0.test on by default.
local next_host = -1
local hosts = 100000

function init(args)
  hosts = tonumber(args[1]) or hosts
  next_host = (tonumber(args[2]) or 0) - 1
end

function request()
  next_host = (next_host + 1) % hosts
  return wrk.format('GET', '/x', { Host = 'h' .. next_host .. '.test' })
end
