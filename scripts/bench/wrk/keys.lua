-- Each request is for another host, from h0.test on.
local next_host = -1
local hosts = 100000

function init(args)
  hosts = tonumber(args[1]) or hosts
end

function request()
  next_host = (next_host + 1) % hosts
  return wrk.format('GET', '/x', { Host = 'h' .. next_host .. '.test' })
end
