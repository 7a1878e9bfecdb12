-- Requests under many rules, each counted under a key of its own. Arguments: rules, keys, pause of a connection in ms.
local rules, keys, pause
local sent = 0

function init(args)
  rules, keys, pause = tonumber(args[1]), tonumber(args[2]), tonumber(args[3])
end

function delay()
  return pause
end

function request()
  sent = sent + 1
  return wrk.format('POST', '/r' .. sent % rules, { Host = 'bench.test', ['X-Client'] = sent % keys })
end
