-- Creates a new user in a SCIM directory with each request. Arguments: path, secret, prefix of the user names.
local made = 0
local path, headers, prefix
local body = [[{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"%s@example.com","externalId":"%s",]]
  .. [["name":{"givenName":"Ada","familyName":"Lovelace"},"emails":[{"primary":true,"value":"%s@example.com","type":"work"}],]]
  .. [["displayName":"Ada Lovelace","active":true}]]

function init(args)
  path = args[1] .. '/Users'
  headers = { Authorization = 'Bearer ' .. args[2], ['Content-Type'] = 'application/scim+json' }
  prefix = args[3]
end

function request()
  made = made + 1
  local name = prefix .. made
  return wrk.format('POST', path, headers, body:format(name, name, name))
end
