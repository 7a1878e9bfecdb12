-- Each request has another of the headers in a file, of which each line is `name: value`. Argument: the file.
local headers = {}
local sent = 0

function init(args)
  for line in io.lines(args[1]) do
    local name, value = line:match('^(%S+): (.*)$')
    headers[#headers + 1] = wrk.format('GET', '/x', { [name] = value })
  end
end

function request()
  sent = sent % #headers + 1
  return headers[sent]
end
