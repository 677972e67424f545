# Sends an email; after a lost response it retries without sending twice. Standard library only: ruby send.rb
require "json"
require "net/http"
require "securerandom"

AGAIN = [429, 500, 502, 503, 504].freeze

def send_email(email)
  uri = URI("#{ENV.fetch("POSTRIDER_URL")}/v1/emails")
  request = Net::HTTP::Post.new(
    uri,
    "Authorization" => "Bearer #{ENV.fetch("POSTRIDER_KEY")}",
    "Content-Type" => "application/json",
    "Idempotency-Key" => SecureRandom.uuid,
  )
  request.body = JSON.generate(email)
  2.downto(0) do |left|
    answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https", read_timeout: 60) { |http| http.request(request) }
    return JSON.parse(answer.body).fetch("data") if answer.code == "200"
    abort(answer.body) if left.zero? || !AGAIN.include?(answer.code.to_i)
    sleep([(answer["Retry-After"] || 1).to_f, 60].min)
  rescue IOError, SystemCallError, Timeout::Error
    raise if left.zero?
    sleep(1)
  end
end

sent = send_email(
  from: "Shop <shop@simulator.test>",
  to: ["delivered@simulator.test"],
  subject: "Your order",
  html: "<p>Thank you.</p>",
)
puts "#{sent["id"]} #{sent["status"]}"
