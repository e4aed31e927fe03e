// SPDX-License-Identifier: ISC
// node-pg-migrate with its defaults: an advisory lock of the session while it migrates.
import assert from "node:assert/strict";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { runner } from "node-pg-migrate";
import pg from "pg";
import { check, fails, finish } from "./check.js";

const MIGRATIONS = {
	"1_author.cjs": `
exports.up = (pgm) => {
	pgm.sql("SET lock_timeout = '20s'");
	pgm.createTable("author", { id: "id", name: { type: "text", notNull: true } });
};
exports.down = (pgm) => pgm.dropTable("author");`,
	"2_index.cjs": `
exports.up = (pgm) => {
	pgm.noTransaction();
	pgm.createIndex("author", "name", { method: "btree", concurrently: true });
};
exports.down = (pgm) => pgm.dropIndex("author", "name");`,
	"3_rows.cjs": `
exports.up = (pgm) => pgm.sql("INSERT INTO author (name) VALUES ('one'), ('two')");
exports.down = (pgm) => pgm.sql("DELETE FROM author");`,
};

const dir = await fs.mkdtemp(path.join(os.tmpdir(), "pgusher-migrations-"));
for (const [name, text] of Object.entries(MIGRATIONS))
	await fs.writeFile(path.join(dir, name), text);

const migrate = async (direction, more = {}) => {
	const dbClient = new pg.Client();
	await dbClient.connect();
	try {
		return await runner({
			dbClient, direction, dir, migrationsTable: "pgmigrations", log: () => {}, ...more,
		});
	} finally {
		await dbClient.end();
	}
};

const count = async () => {
	const client = new pg.Client();
	await client.connect();
	const { rows } = await client.query("SELECT count(*)::int FROM author");
	await client.end();
	return rows[0].count;
};

// The lock is tried once: of several that migrate at once, each succeeds or finds it taken.
await check("migrates once, though all clients do", async () => {
	for (;;) {
		try {
			await migrate("up");
			break;
		} catch (error) {
			assert.match(error.message, /Another migration is already running/);
		}
	}
	assert.equal(await count(), 2);
});
await check(
	"goes back, and finds the lock released",
	async () => {
		assert.equal((await migrate("down")).length, 1);
		assert.equal(await count(), 0);
		await migrate("up");
		await migrate("down", { count: 3 });
		await fails("42P01", count());
	},
	1,
);
await fs.rm(dir, { recursive: true });
finish();
