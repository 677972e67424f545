# Drives ruby-postmark: host, port, key. Prints the answers, the errors of a wrong key, and the calls as JSON.
require 'json'
require 'postmark'

host, port, key = ARGV
client_of = ->(token) { Postmark::ApiClient.new(token, host: host, port: port.to_i, secure: false) }
client = client_of.call(key)
calls = []
# Enumerators make their requests in the block.
call = lambda do |on, name, *arguments, &read|
  result = on.public_send(name, *arguments)
  result = read.call(result) if read
  calls << [name, :answered]
  result
rescue Postmark::Error
  calls << [name, :refused]
  raise
end
message = { from: 'Shop <shop@simulator.test>', to: 'delivered+rb@simulator.test', subject: 'From Ruby', html_body: '<p>Hi</p>', tag: 'order',
            metadata: { n: '1' }, attachments: [{ 'Name' => 'note.txt', 'Content' => ['a note'].pack('m0'), 'ContentType' => 'text/plain' }] }
first = ->(found) { found.first }
to_rb = { recipient: 'delivered+rb@simulator.test' }

one = call.(client, :deliver, message)
many = call.(client, :deliver_in_batches, [message.merge(to: 'delivered+rb2@simulator.test'), message.merge(to: 'ann')])
found = call.(client, :get_messages, to_rb.dup).map { |shown| shown[:message_id] }
listed = call.(client, :messages, to_rb.dup, &first)[:message_id]
count = call.(client, :get_messages_count, to_rb.dup)
shown = call.(client, :get_message, one[:message_id])
dump = call.(client, :dump_message, one[:message_id])[:body]

failed = client.deliver(message.merge(to: 'hardfail+rb@simulator.test'))[:message_id]
200.times do
  break unless call.(client, :get_bounces, messageID: failed).empty?
  sleep 0.05
end
bounce = call.(client, :bounces, { messageID: failed }, &first)
bounced = call.(client, :get_bounce, bounce[:id])
inactive = begin
  client.deliver(message.merge(to: 'hardfail+rb@simulator.test'))
rescue Postmark::Error => error
  [error.class.name, error.full_response['ErrorCode']]
end
activated = call.(client, :activate_bounce, bounce[:id])

suppressed = call.(client, :create_suppressions, 'outbound', ['gone+rb@simulator.test'])
dumped = call.(client, :dump_suppressions, 'outbound').map { |entry| entry[:email_address] }
deleted = call.(client, :delete_suppressions, 'outbound', ['gone+rb@simulator.test'])

webhook = call.(client, :create_webhook, url: 'https://hooks.example.com/rb', triggers: { 'Bounce' => { 'Enabled' => true } })
changed = call.(client, :update_webhook, webhook[:id], triggers: { 'Open' => { 'Enabled' => true } })
webhooks = [call.(client, :get_webhook, webhook[:id]), *call.(client, :get_webhooks)].map { |each| each[:id] }
removed = call.(client, :delete_webhook, webhook[:id])

stranger = client_of.call('svc_test_wrong')
wrong = {
  deliver: [message], deliver_in_batches: [[message]], messages: [{}], get_messages: [{}], get_messages_count: [{}], get_message: ['x'],
  dump_message: ['x'], bounces: [{}], get_bounces: [{}], get_bounce: [1], activate_bounce: [1], dump_suppressions: ['outbound'],
  create_suppressions: ['outbound', ['a@one.example']], delete_suppressions: ['outbound', ['a@one.example']],
  create_webhook: [{ url: 'https://hooks.example.com' }], get_webhooks: [{}], get_webhook: [1], update_webhook: [1, {}], delete_webhook: [1]
}.map do |name, arguments|
  call.(stranger, name, *arguments, &(first if %i[messages bounces].include?(name)))
  'none'
rescue Postmark::Error => error
  error.class.name
end

puts JSON.generate(
  one: one, many: many, found: found, listed: listed, count: count, shown: shown, dump: dump, failed: failed, bounce: bounce, bounced: bounced,
  inactive: inactive, activated: activated, suppressed: suppressed, dumped: dumped, deleted: deleted, changed: changed, webhooks: webhooks,
  webhook: webhook, removed: removed, wrong: wrong.uniq, calls: calls.uniq
)
