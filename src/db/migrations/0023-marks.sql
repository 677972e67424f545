-- Widens a check of reports: an exclusive lock while its rows, one for each report, are read.

-- A complaint may name its email by the mark in the message's header.
alter table reports
  drop constraint reports_matched_by_check,
  add constraint reports_matched_by_check check (matched_by in ('return path', 'mark', 'message id'));
