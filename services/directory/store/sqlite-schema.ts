import type { Resource } from '../model.js'

/**
 * The embedded database's tables. Every query of sqlite.ts uses one of the keys or indexes here. A create costs the
 * pages that it touches, so a resource lists its terms itself (JSON) instead of through a second index.
 */
export const sqliteSchema = `
CREATE TABLE IF NOT EXISTS directories (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, product TEXT NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 0, sequence INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS directories_scope ON directories (tenant, product, created, id);
CREATE INDEX IF NOT EXISTS directories_product ON directories (product, created, id);
CREATE INDEX IF NOT EXISTS directories_age ON directories (created, id);
CREATE TABLE IF NOT EXISTS removed_directories (id TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS resources (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, directory_id TEXT NOT NULL, type TEXT NOT NULL,
  tenant TEXT NOT NULL, product TEXT NOT NULL, created TEXT NOT NULL, modified TEXT NOT NULL, label TEXT NOT NULL,
  raw TEXT NOT NULL, terms TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS resources_directory ON resources (directory_id, type, created, id);
CREATE INDEX IF NOT EXISTS resources_scope ON resources (tenant, product, type, created, id);

CREATE TABLE IF NOT EXISTS resource_counts (
  directory_id TEXT NOT NULL, type TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (directory_id, type)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS resources_added AFTER INSERT ON resources BEGIN
  INSERT INTO resource_counts VALUES (new.directory_id, new.type, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER IF NOT EXISTS resources_gone AFTER DELETE ON resources BEGIN
  UPDATE resource_counts SET n = n - 1 WHERE directory_id = old.directory_id AND type = old.type;
END;

CREATE TABLE IF NOT EXISTS terms (
  directory_id TEXT NOT NULL, type TEXT NOT NULL, term TEXT NOT NULL, resource INTEGER NOT NULL,
  PRIMARY KEY (directory_id, type, term, resource)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS memberships (
  group_id TEXT NOT NULL, user_id TEXT NOT NULL, display TEXT, PRIMARY KEY (group_id, user_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memberships_user ON memberships (user_id, group_id);
`

/** For a file made before resources were counted by triggers: counts them once. */
export const countOnce = `
INSERT INTO resource_counts SELECT directory_id, type, count(*) FROM resources GROUP BY directory_id, type
`

/** For a file made before memberships kept what was sent as `display`. */
export const laterMembershipColumn = {
  table: 'memberships',
  column: 'display',
  sql: 'ALTER TABLE memberships ADD COLUMN display TEXT',
}

/** A row of `resources`. */
export interface ResourceRow extends Omit<Resource, 'directoryId' | 'raw'> {
  directory_id: string
  raw: string
}

/** The resource of a row. */
export function toResource(row: ResourceRow): Resource {
  const { id, directory_id: directoryId, type, tenant, product, created, modified, label, raw } = row
  return { id, directoryId, type, tenant, product, created, modified, label, raw: JSON.parse(raw) }
}
