-- Joins for wrk: every request comes from a visitor of its own, named in X-Forwarded-For.
-- BENCH_ROOM names the room, BENCH_FROM the first visitor. One string a request, so that the
-- script costs the server under test and the yardstick the same little.
local body = '{"roomId":"' .. os.getenv("BENCH_ROOM") .. '"}'
local head = "POST /api/v1/join HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
  .. "User-Agent: bench\r\nContent-Length: " .. #body .. "\r\nX-Forwarded-For: 10."
local tail = "\r\n\r\n" .. body
local number = tonumber(os.getenv("BENCH_FROM"))
local floor = math.floor

function request()
  number = number + 1
  local n = number % 16777216
  return head .. floor(n / 65536) .. "." .. floor(n / 256) % 256 .. "." .. n % 256 .. tail
end
