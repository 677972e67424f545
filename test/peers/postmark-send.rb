# Drives ruby-postmark: host, port, key. Prints the answers as JSON.
require 'json'
require 'postmark'

host, port, key = ARGV
client = Postmark::ApiClient.new(key, host: host, port: port.to_i, secure: false)
message = { from: 'Shop <shop@simulator.test>', to: 'delivered+rb@simulator.test', subject: 'From Ruby', html_body: '<p>Hi</p>', tag: 'order',
            metadata: { n: '1' }, attachments: [{ 'Name' => 'note.txt', 'Content' => ['a note'].pack('m0'), 'ContentType' => 'text/plain' }] }
wrong = begin
  Postmark::ApiClient.new('svc_test_wrong', host: host, port: port.to_i, secure: false).deliver(message)
rescue Postmark::ApiInputError, Postmark::InvalidApiKeyError => error
  error.class.name
end
one = client.deliver(message)
many = client.deliver_in_batches([message.merge(to: 'delivered+rb2@simulator.test'), message.merge(to: 'ann')])
puts JSON.generate(one: one, many: many, wrong: wrong, found: client.get_messages(recipient: 'delivered+rb@simulator.test').map { |found| found[:message_id] })
