/**
 * Fills a MariaDB with the tables of a Postal installation, as far as the import reads them: organisations with servers, domains with keys
 * of 1024 bits, credentials, webhooks, a queue, and a database for each server with suppressions, messages and deliveries.
 */
import { generateKeyPairSync } from 'node:crypto'
import type { Connection, ResultSetHeader } from 'mysql2/promise'

export interface PostalScale {
  organizations: number
  servers: number
  domains: number
  suppressions: number
  messages: number
  /** Messages in the queue; at least two for each server. */
  queued: number
}

export const smallPostal: PostalScale = { organizations: 2, servers: 4, domains: 8, suppressions: 400, messages: 800, queued: 12 }

const times = 'created_at datetime, updated_at datetime'

const mainLayout = `
create table organizations (id int primary key auto_increment, uuid varchar(255), name varchar(255), permalink varchar(255), ${times},
  ip_pool_id int, owner_id int, deleted_at datetime, suspended_at datetime, suspension_reason varchar(255));
create table organization_users (id int primary key auto_increment, organization_id int, user_id int, created_at datetime, admin tinyint(1),
  all_servers tinyint(1), user_type varchar(255));
create table users (id int primary key auto_increment, uuid varchar(255), first_name varchar(255), last_name varchar(255),
  email_address varchar(255), password_digest varchar(255), ${times}, admin tinyint(1) default 0);
create table servers (id int primary key auto_increment, organization_id int, uuid varchar(255), name varchar(255), mode varchar(255),
  ip_pool_id int, ${times}, permalink varchar(255), send_limit int, deleted_at datetime, message_retention_days int, token varchar(255),
  postmaster_address varchar(255), suspended_at datetime, privacy_mode tinyint(1) default 0);
create table domains (id int primary key auto_increment, server_id int, uuid varchar(255), name varchar(255), verified_at datetime,
  dkim_private_key text, ${times}, dkim_status varchar(255), outgoing tinyint(1) default 1, owner_type varchar(255), owner_id int,
  dkim_identifier_string varchar(255), use_for_any tinyint(1));
create table credentials (id int primary key auto_increment, server_id int, \`key\` varchar(255), type varchar(255), name varchar(255),
  options text, last_used_at datetime(6), created_at datetime(6), updated_at datetime(6), hold tinyint(1) default 0, uuid varchar(255));
create table webhooks (id int primary key auto_increment, server_id int, uuid varchar(255), name varchar(255), url varchar(255),
  all_events tinyint(1) default 0, enabled tinyint(1) default 1, sign tinyint(1) default 1, ${times});
create table webhook_events (id int primary key auto_increment, webhook_id int, event varchar(255), created_at datetime);
create table track_domains (id int primary key auto_increment, uuid varchar(255), server_id int, domain_id int, name varchar(255),
  dns_status varchar(255), ${times}, ssl_enabled tinyint(1) default 1, track_clicks tinyint(1) default 1, track_loads tinyint(1) default 1,
  excluded_click_domains text);
create table routes (id int primary key auto_increment, uuid varchar(255), server_id int, domain_id int, name varchar(255), mode varchar(255));
create table ip_pools (id int primary key auto_increment, name varchar(255), uuid varchar(255), \`default\` tinyint(1) default 0);
create table ip_addresses (id int primary key auto_increment, ip_pool_id int, ipv4 varchar(255), ipv6 varchar(255), hostname varchar(255));
create table ip_pool_rules (id int primary key auto_increment, uuid varchar(255), owner_type varchar(255), owner_id int, ip_pool_id int,
  from_text text, to_text text);
create table queued_messages (id int primary key auto_increment, server_id int, message_id int, domain varchar(255), locked_by varchar(255),
  locked_at datetime, retry_after datetime, ${times}, ip_address_id int, attempts int default 0, route_id int, manual tinyint(1) default 0,
  batch_key varchar(255), key on_server (server_id));
create table worker_roles (id bigint primary key auto_increment, role varchar(255), worker varchar(255), acquired_at datetime,
  unique key on_role (role));
`

const serverLayout = `
create table suppressions (id int(11) not null auto_increment primary key, type varchar(255), address varchar(255), reason varchar(255),
  timestamp decimal(18,6), keep_until decimal(18,6), key on_address (address(6)));
create table messages (id int(11) not null auto_increment primary key, token varchar(255), scope varchar(10), rcpt_to varchar(255),
  mail_from varchar(255), subject varchar(255), message_id varchar(255), timestamp decimal(18,6), route_id int(11), domain_id int(11),
  credential_id int(11), status varchar(255), held tinyint(1) default 0, size varchar(255), last_delivery_attempt decimal(18,6),
  raw_table varchar(255), raw_body_id int(11), raw_headers_id int(11), bounce tinyint(1) default 0, bounce_for_id int(11) default 0,
  tag varchar(255), loaded decimal(18,6), clicked decimal(18,6), hold_expiry decimal(18,6), key on_token (token(6)),
  key on_scope_and_status (scope(1), status(6), timestamp));
create table deliveries (id int(11) not null auto_increment primary key, message_id int(11), status varchar(255), code int(11),
  output varchar(512), details varchar(512), sent_with_ssl tinyint(1) default 0, log_id varchar(100), timestamp decimal(18,6),
  time decimal(8,2), key on_message_id (message_id));
create table \`raw-2026-11-25\` (id int(11) not null auto_increment primary key, data longblob, next int(11));
`

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
/** The key of every domain, as Postal writes it: PKCS#1. */
export const postalDkimKey = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()

/** Keys have 24 letters and digits. */
export const postalKey = (type: 'API' | 'SMTP', server: number) => `${type}x${server}`.padEnd(24, '0aB')
export const postalDomain = (number: number) => `shop${number}.example`
export const postalSelector = (number: number) => `Ab${number}cD`

/** `now`: the time of the records. */
export async function fillPostal(connection: Connection, scale: PostalScale, now: Date): Promise<void> {
  const nowSeconds = now.getTime() / 1000
  await connection.query('create database postal character set utf8mb4; use postal;')
  await connection.query(mainLayout)
  const insert = async (table: string, rows: readonly Record<string, unknown>[]) => {
    const names = Object.keys(rows[0] ?? {})
    if (rows.length > 0)
      await connection.query(`insert into ${table} (${names.map((name) => `\`${name}\``).join(', ')}) values ?`, [
        rows.map((row) => names.map((name) => row[name])),
      ])
  }
  const count = (length: number) => Array.from({ length }, (_, index) => index + 1)
  const organizationOf = (server: number) => ((server - 1) % scale.organizations) + 1
  await insert('users', [
    { uuid: 'u1', email_address: 'Owner@example.org', admin: 1, created_at: now },
    { uuid: 'u2', email_address: 'clerk@example.org', admin: 0, created_at: now },
  ])
  await insert(
    'organizations',
    count(scale.organizations).map((id) => ({ uuid: `o${id}`, name: `Org ${id}`, permalink: `org-${id}`, owner_id: 1 })),
  )
  await insert(
    'organization_users',
    count(scale.organizations).flatMap((id) => [1, 2].map((user) => ({ organization_id: id, user_id: user, admin: 1 }))),
  )
  await insert(
    'servers',
    count(scale.servers).map((id) => ({
      organization_id: organizationOf(id),
      uuid: `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`,
      name: `Server ${id}`,
      permalink: `server-${id}`,
      mode: id === scale.servers ? 'Development' : 'Live',
      send_limit: id === 1 ? 5000 : null,
      token: `tok${id}`,
    })),
  )
  await insert(
    'domains',
    count(scale.domains).map((id) => ({
      uuid: `d${id}`,
      name: postalDomain(id),
      verified_at: id === scale.domains ? null : now,
      dkim_private_key: postalDkimKey,
      dkim_identifier_string: postalSelector(id),
      // The first belongs to an organisation, and so to all its servers.
      owner_type: id === 1 ? 'Organization' : 'Server',
      owner_id: id === 1 ? 1 : ((id - 1) % scale.servers) + 1,
    })),
  )
  const credentials = count(scale.servers).flatMap((id) => [
    { server_id: id, key: postalKey('API', id), type: 'API', name: 'Main API key', created_at: now },
    { server_id: id, key: postalKey('SMTP', id), type: 'SMTP', name: 'Main SMTP login', created_at: now },
  ])
  await insert('credentials', [...credentials, { server_id: 1, key: '192.0.2.0/24', type: 'SMTP-IP', name: 'Office', created_at: now }])
  await insert(
    'webhooks',
    count(scale.servers).map((id) => ({
      server_id: id,
      uuid: `w${id}`,
      name: 'Main',
      url: `https://hooks.example.org/${id}`,
      all_events: id % 2,
    })),
  )
  await insert(
    'webhook_events',
    count(scale.servers).map((id) => ({ webhook_id: id, event: 'MessageBounced' })),
  )
  await insert('track_domains', [{ uuid: 't1', server_id: 2, domain_id: 2, name: 'click', excluded_click_domains: 'a.example\nb.example' }])
  await insert('routes', [{ uuid: 'r1', server_id: 1, domain_id: 1, name: 'support', mode: 'Endpoint' }])
  await insert('ip_pools', [{ name: 'Main Pool', uuid: 'p1' }])
  await insert('ip_addresses', [{ ip_pool_id: 1, ipv4: '192.0.2.77', hostname: 'mx.example.org' }])
  const each = (total: number) => Math.floor(total / scale.servers)
  for (const id of count(scale.servers)) {
    await connection.query(`create database \`postal-server-${id}\`; use \`postal-server-${id}\`;`)
    await connection.query(serverLayout)
    // The last of a server's entries has ended; one is of incoming mail.
    await connection.query(
      `insert into suppressions (type, address, reason, timestamp, keep_until)
       select if(seq = 1, 'sender', 'recipient'), concat('Person', seq, '@one.example'), 'too many soft fails', ?, if(seq = ?, ?, ?)
       from seq_1_to_${each(scale.suppressions)}`,
      [nowSeconds - 86_400, each(scale.suppressions), nowSeconds - 10, nowSeconds + 86_400],
    )
    await fillMessages(connection, id, each(scale.messages), nowSeconds)
    await fillQueue(connection, id, each(scale.queued), nowSeconds)
  }
}

const daySeconds = 86_400

/** Two messages of a server are older than emails are kept, every hundredth is incoming, and a few failed, bounced or were held. */
async function fillMessages(connection: Connection, server: number, count: number, nowSeconds: number): Promise<void> {
  const step = (20 * daySeconds) / count
  await connection.query(
    `insert into messages (id, token, scope, rcpt_to, mail_from, subject, message_id, timestamp, status, tag)
     select seq, concat('tok', seq, 's', ?), if(seq % 100 = 7, 'incoming', 'outgoing'), concat('person', seq, '@one.example'),
       concat('shop@shop', ?, '.example'), concat('Order ', seq), concat('m', seq, '@shop', ?, '.example'),
       if(seq <= 2, ?, ? + seq * ?),
       case seq % 50 when 11 then 'HardFail' when 12 then 'Bounced' when 13 then 'HoldCancelled' else 'Sent' end, if(seq % 3 = 0, 'news', null)
     from seq_1_to_${count}`,
    [server, server, server, nowSeconds - 100 * daySeconds, nowSeconds - 20 * daySeconds - 3600, step],
  )
  await connection.query(
    `insert into deliveries (message_id, status, output, details, sent_with_ssl, timestamp, time)
     select id, 'SoftFail', '450 4.7.1 Greylisted', 'Temporary SMTP delivery error', 0, timestamp + 1, 0.2 from messages where id % 10 = 1`,
  )
  await connection.query(
    `insert into deliveries (message_id, status, output, details, sent_with_ssl, timestamp, time)
     select id, status, if(status = 'Sent', '250 2.0.0 OK', '550 5.1.1 No such user'), concat('Message for ', rcpt_to), 1, timestamp + 300, 1.25
     from messages`,
  )
}

/** The first was being sent when Postal stopped, and has the fields that Postal adds before an attempt; the second is incoming. */
async function fillQueue(connection: Connection, server: number, count: number, nowSeconds: number): Promise<void> {
  for (let nth = 1; nth <= count; nth++) {
    const token = `queued${nth}s${server}`
    const own = nth === 1 ? `DKIM-Signature: v=1; a=rsa-sha256; d=${postalDomain(server)};\r\n\tb=AAAA\r\nX-Postal-MsgID: ${token}\r\n` : ''
    const headers = `${own}From: Shop <shop@${postalDomain(server)}>\r\nTo: ${token}@two.example\r\nSubject: Waiting ${token}\r\nMessage-ID: <${token}@shop.example>\r\nDate: Wed, 25 Nov 2026 10:00:00 +0000`
    const [head] = await connection.query('insert into `raw-2026-11-25` (data) values (?)', [Buffer.from(headers)])
    const [body] = await connection.query('insert into `raw-2026-11-25` (data) values (?)', [Buffer.from(`Text of ${token}\r\n`)])
    const [message] = await connection.query('insert into messages set ?', [
      {
        token,
        scope: nth === 2 ? 'incoming' : 'outgoing',
        rcpt_to: `${token}@two.example`,
        mail_from: `shop@${postalDomain(server)}`,
        subject: `Waiting ${token}`,
        timestamp: nowSeconds - 7200 + nth,
        status: nth === 1 ? 'SoftFail' : 'Pending',
        raw_table: 'raw-2026-11-25',
        raw_headers_id: (head as ResultSetHeader).insertId,
        raw_body_id: (body as ResultSetHeader).insertId,
        tag: 'waiting',
      },
    ])
    await connection.query('insert into postal.queued_messages set ?', [
      {
        server_id: server,
        message_id: (message as ResultSetHeader).insertId,
        domain: 'two.example',
        attempts: nth === 1 ? 1 : 0,
        locked_at: nth === 1 ? new Date((nowSeconds - 60) * 1000) : null,
      },
    ])
  }
}
