import type { Resource } from '../model.js'

/**
 * The embedded database's tables. Every query of sqlite.ts uses one of the keys or indexes here. A create costs the
 * pages that it touches, so a resource lists its terms itself (JSON) instead of through a second index.
 */
export const sqliteSchema = `
CREATE TABLE directories (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, product TEXT NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 0, sequence INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX directories_scope ON directories (tenant, product, created, id);
CREATE INDEX directories_product ON directories (product, created, id);
CREATE INDEX directories_age ON directories (created, id);
CREATE TABLE removed_directories (id TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE resources (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, directory_id TEXT NOT NULL, type TEXT NOT NULL,
  tenant TEXT NOT NULL, product TEXT NOT NULL, created TEXT NOT NULL, modified TEXT NOT NULL, label TEXT NOT NULL,
  raw TEXT NOT NULL, terms TEXT NOT NULL
);
CREATE INDEX resources_directory ON resources (directory_id, type, created, id);
CREATE INDEX resources_scope ON resources (tenant, product, type, created, id);

CREATE TABLE resource_counts (
  directory_id TEXT NOT NULL, type TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (directory_id, type)
) WITHOUT ROWID;
CREATE TRIGGER resources_added AFTER INSERT ON resources BEGIN
  INSERT INTO resource_counts VALUES (new.directory_id, new.type, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER resources_gone AFTER DELETE ON resources BEGIN
  UPDATE resource_counts SET n = n - 1 WHERE directory_id = old.directory_id AND type = old.type;
END;

CREATE TABLE terms (
  directory_id TEXT NOT NULL, type TEXT NOT NULL, term TEXT NOT NULL, resource INTEGER NOT NULL,
  PRIMARY KEY (directory_id, type, term, resource)
) WITHOUT ROWID;

CREATE TABLE memberships (
  group_id TEXT NOT NULL, user_id TEXT NOT NULL, display TEXT, PRIMARY KEY (group_id, user_id)
) WITHOUT ROWID;
CREATE INDEX memberships_user ON memberships (user_id, group_id);
`

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
