#include "storage/schema.hpp"

#include <array>

namespace campaign::storage {
namespace {

constexpr const char* version_1 = R"sql(
CREATE TABLE campaigns (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, plan_text TEXT NOT NULL, plan_sha256 TEXT NOT NULL,
  state TEXT NOT NULL, state_detail TEXT NOT NULL, submitted_by TEXT NOT NULL, submitted INTEGER NOT NULL, ended INTEGER,
  cancel_requested INTEGER NOT NULL DEFAULT 0, cancel_by TEXT NOT NULL DEFAULT '', error_json TEXT NOT NULL DEFAULT '',
  engine_version TEXT NOT NULL) STRICT;
CREATE INDEX campaigns_open ON campaigns(id) WHERE ended IS NULL;
CREATE TABLE phases (
  id INTEGER PRIMARY KEY, campaign INTEGER NOT NULL REFERENCES campaigns(id), ordinal INTEGER NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
  method TEXT NOT NULL, method_version INTEGER NOT NULL, began INTEGER, ended INTEGER, summary_json TEXT NOT NULL, UNIQUE (campaign, ordinal)) STRICT;
CREATE TABLE steps (
  id INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL REFERENCES campaigns(id), number INTEGER NOT NULL, path TEXT NOT NULL,
  input_hash TEXT NOT NULL, input_json TEXT NOT NULL, effect INTEGER NOT NULL, state INTEGER NOT NULL, intent_at INTEGER NOT NULL, ended_at INTEGER,
  host TEXT NOT NULL, command TEXT NOT NULL, before_json TEXT NOT NULL, outcome_json TEXT NOT NULL, evidence TEXT NOT NULL,
  attempts INTEGER NOT NULL, resolved_by TEXT NOT NULL DEFAULT '', UNIQUE (campaign, path), UNIQUE (campaign, number)) STRICT;
CREATE TABLE undos (
  id INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL REFERENCES campaigns(id), step INTEGER NOT NULL REFERENCES steps(id), kind TEXT NOT NULL,
  data_json TEXT NOT NULL, state INTEGER NOT NULL, registered INTEGER NOT NULL, finished INTEGER, evidence TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX undos_of ON undos(campaign, id);
CREATE TABLE decisions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL REFERENCES campaigns(id), phase TEXT NOT NULL, label TEXT NOT NULL, at INTEGER NOT NULL,
  question TEXT NOT NULL, chosen TEXT NOT NULL, policy TEXT NOT NULL, candidates_json TEXT NOT NULL, cannot_show TEXT NOT NULL, state TEXT NOT NULL,
  UNIQUE (campaign, label)) STRICT;
CREATE TABLE approvals (
  id INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL REFERENCES campaigns(id), decision TEXT NOT NULL, candidate TEXT NOT NULL,
  by_whom TEXT NOT NULL, at INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT;
CREATE INDEX approvals_of ON approvals(campaign, id);
CREATE TABLE artifacts (
  id INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL REFERENCES campaigns(id), step INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  sha256 TEXT NOT NULL, size INTEGER NOT NULL, origin TEXT NOT NULL, detail_json TEXT NOT NULL, at INTEGER NOT NULL, UNIQUE (step, name, sha256)) STRICT;
CREATE INDEX artifacts_of ON artifacts(campaign, id);
CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL, step INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, data_json TEXT NOT NULL) STRICT;
CREATE INDEX observations_of ON observations(campaign, step, id);
CREATE TABLE loads (
  id INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL, host TEXT NOT NULL, service TEXT NOT NULL, model TEXT NOT NULL, mode TEXT NOT NULL,
  began INTEGER NOT NULL, seconds REAL NOT NULL, finished INTEGER NOT NULL, outcome TEXT NOT NULL) STRICT;
CREATE INDEX loads_of ON loads(host, service, id);
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, campaign INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, data_json TEXT NOT NULL) STRICT;
CREATE INDEX events_of ON events(campaign, seq);
CREATE INDEX events_latest ON events(campaign, kind, subject, seq);
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, who TEXT NOT NULL, act TEXT NOT NULL, detail TEXT NOT NULL) STRICT;
)sql";

constexpr std::array<const char*, schema_version> steps{version_1};

}   // namespace

std::span<const char* const> migrations() {
    return steps;
}

}   // namespace campaign::storage
