-- Each connection waits between its requests, so that 32 of them send about 3800 a second.
function delay()
  return 8
end
