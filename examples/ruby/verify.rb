# Verifies a webhook. Standard library only; as a CGI program it answers 204 if it is genuine, otherwise 400.
require "json"
require "openssl"

# `body` as received. Returns the event, or nil if it is not genuine or more than five minutes old.
def verified(body, headers, secret)
  id, timestamp = headers.values_at("webhook-id", "webhook-timestamp")
  return if (Time.now.to_i - timestamp.to_i).abs > 300
  key = secret.delete_prefix("whsec_").unpack1("m0")
  # Anybody could sign with an empty secret.
  abort "WEBHOOK_SECRET is missing, or is not a secret" if key.bytesize < 16
  wanted = "v1," + [OpenSSL::HMAC.digest("SHA256", key, "#{id}.#{timestamp}.#{body}")].pack("m0")
  JSON.parse(body) if headers["webhook-signature"].to_s.split.any? { |signature| OpenSSL.secure_compare(wanted, signature) }
end

names = %w[webhook-id webhook-timestamp webhook-signature]
headers = names.to_h { |name| [name, ENV["HTTP_#{name.upcase.tr("-", "_")}"]] }
event = verified($stdin.binmode.read, headers, ENV.fetch("WEBHOOK_SECRET"))
puts event ? "Status: 204" : "Status: 400", ""
warn "#{event["event"]} #{event["uuid"]}" if event
