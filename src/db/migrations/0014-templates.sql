-- Takes no locks: new tables.

-- Module: templates

-- A template and its draft.
create table templates (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  name text collate "C" not null,
  subject text not null,
  html text,
  text text,
  variables jsonb not null, -- by name: type and default
  last_version integer not null default 0,
  published_version integer, -- null: only a draft
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, name)
);

-- Published versions, which never change.
create table template_versions (
  tenant_id text collate "C" not null,
  template_id text collate "C" not null,
  version integer not null,
  subject text not null,
  html text,
  text text,
  variables jsonb not null,
  published_at timestamptz not null,
  primary key (tenant_id, template_id, version),
  foreign key (tenant_id, template_id) references templates (tenant_id, id) on delete cascade
);
