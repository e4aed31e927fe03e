// SPDX-License-Identifier: ISC
// postgres.js with its defaults: it prepares every query by name, and sends them in pipelines.
import assert from "node:assert/strict";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import postgres from "postgres";
import { check, fails, finish, MODE } from "./check.js";

const pools = [];
const quiet = { onnotice: () => {} };

if (MODE === "console") {
	await check("the console", async () => {
		// By default it reads the catalog of types.
		const sql = postgres({ max: 2, fetch_types: false, ...quiet });
		const [{ one }] = await sql`SELECT 1 AS one`;
		assert.equal(one, 1);
		for (let turn = 0; turn < 3; turn++) assert.ok((await sql`SHOW POOLS`).length);
		await sql.begin(async (inside) => assert.ok((await inside`SHOW CONFIG`).length > 50));
		await fails("08P01", sql`SELECT * FROM x`);
		await sql.end();
	}, 1);
	finish();
}

await check("connects", async (number) => {
	const connection = { application_name: `postgres.js ${number}` };
	const sql = postgres({ max: 2, connection, ...quiet });
	pools[number] = sql;
	const [row] = await sql`SHOW application_name`;
	assert.equal(row.application_name, `postgres.js ${number}`);
	await sql`CREATE TABLE ${sql(`item${number}`)} (id int, name text)`;
});

await check("startup parameters stay the client's own", async (number) => {
	const connection = {
		search_path: `own${number}`, statement_timeout: 41000 + number, TimeZone: `Etc/GMT+${number}`,
	};
	const sql = postgres({ max: 2, connection });
	for (let turn = 0; turn < 10; turn++) {
		const [row] = await sql`SELECT current_setting('search_path') AS path,
			current_setting('statement_timeout') AS time, current_setting('TimeZone') AS zone`;
		const { path, time, zone } = row;
		assert.deepEqual([path, zone], [`own${number}`, `Etc/GMT+${number}`]);
		assert.equal(time, number ? `${41000 + number}ms` : "41s");
	}
	await sql.end();
});

await check("statements are prepared by name", async (number) => {
	const sql = pools[number];
	for (let turn = 0; turn < 15; turn++) {
		const [row] = await sql`SELECT ${number}::int * 1000 + ${turn}::int AS sum`;
		assert.equal(row.sum, number * 1000 + turn);
		const [same] = await sql.unsafe(`SELECT ${number} AS n, $1::text AS w`, [`w${turn}`], {
			prepare: true,
		});
		assert.deepEqual({ ...same }, { n: number, w: `w${turn}` });
	}
	const rows = await Promise.all(
		Array.from({ length: 60 }, (_, i) => sql.unsafe(`SELECT $1::int + ${i % 20} AS n`, [i])),
	);
	assert.deepEqual(rows.map(([row]) => row.n), Array.from({ length: 60 }, (_, i) => i + (i % 20)));
});

await check("transactions, savepoints and errors", async (number) => {
	const sql = pools[number];
	const table = sql(`item${number}`);
	for (let turn = 0; turn < 10; turn++) {
		await sql.begin(async (tx) => {
			await tx`INSERT INTO ${table} VALUES (${turn}, 'kept')`;
			await fails("22012", tx.savepoint((save) => save`SELECT 1 / ${0}::int`));
			const [row] = await tx`SELECT count(*)::int AS n FROM ${table}`;
			assert.equal(row.n, turn + 1);
		});
		await fails("42P01", sql.begin(async (tx) => {
			await tx`INSERT INTO ${table} VALUES (${turn}, 'dropped')`;
			await tx`SELECT * FROM nowhere`;
		}));
		await fails("22012", sql`SELECT 1 / ${0}::int`);
		// A pipeline in a transaction, that fails in its middle.
		await fails("22012", sql.begin((tx) => [
			tx`INSERT INTO ${table} VALUES (${turn}, 'dropped')`,
			tx`SELECT 1 / ${0}::int`,
			tx`INSERT INTO ${table} VALUES (${turn}, 'dropped')`,
		]));
	}
	const [row] = await sql`SELECT count(*)::int AS n, min(name) AS least FROM ${table}`;
	assert.deepEqual({ ...row }, { n: 10, least: "kept" });
});

await check("many rows, cursors and simple queries", async (number) => {
	const sql = pools[number];
	const rows = Array.from({ length: 1000 }, (_, i) => ({ id: i + 100, name: `many ${i}` }));
	await sql`INSERT INTO ${sql(`item${number}`)} ${sql(rows)}`;
	let count = 0;
	for await (const part of sql`SELECT generate_series(1, ${100}::int) AS i`.cursor(7))
		for (const row of part) assert.equal(row.i, ++count);
	assert.equal(count, 100);
	const results = await sql`SELECT 1 AS a; SELECT 2 AS b`.simple();
	assert.deepEqual(results.map(([row]) => ({ ...row })), [{ a: 1 }, { b: 2 }]);
});

await check("types", async (number) => {
	const sql = pools[number];
	const date = new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 123));
	for (let turn = 0; turn < 7; turn++) {
		const [row] = await sql`SELECT ${number}::int4 AS a, ${"ünïcödé \\ '"}::text AS b,
			${Buffer.alloc(50000, 7)}::bytea AS c, ${date}::timestamptz AS d,
			${sql.json({ number })}::jsonb AS e, ${[1, 2, number]}::int[] AS f, ${null}::text AS g`;
		assert.deepEqual({ ...row }, {
			a: number, b: "ünïcödé \\ '", c: Buffer.alloc(50000, 7), d: date, e: { number },
			f: [1, 2, number], g: null,
		});
	}
});

await check("COPY in and out", async (number) => {
	const sql = pools[number];
	const table = sql(`item${number}`);
	const lines = Array.from({ length: 5000 }, (_, i) => `${i + 5000}\tcopied ${i}\n`);
	await pipeline(Readable.from(lines), await sql`COPY ${table} FROM STDIN`.writable());
	const out = await sql`COPY (SELECT * FROM ${table} WHERE id >= 5000 ORDER BY id) TO STDOUT`
		.readable();
	const chunks = [];
	for await (const chunk of out) chunks.push(chunk);
	assert.equal(Buffer.concat(chunks).toString(), lines.join(""));
});

const changed = async (number) => {
	const sql = postgres({ max: 1, ...quiet });
	const table = sql(`change${number}`);
	await sql`CREATE TABLE ${table} (a int)`;
	await sql`INSERT INTO ${table} VALUES (1)`;
	const all = async () => (await sql`SELECT * FROM ${table}`).map((row) => ({ ...row }));
	for (let turn = 0; turn < 5; turn++) assert.deepEqual(await all(), [{ a: 1 }]);
	await sql`ALTER TABLE ${table} ADD COLUMN b text DEFAULT 'new'`;
	// postgres.js repeats it by itself, under a new name.
	for (let turn = 0; turn < 5; turn++) assert.deepEqual(await all(), [{ a: 1, b: "new" }]);
	await sql.end();
};
// Alone: a server that never had the plan reports no change to a client that remembers the columns.
await check("a changed table", changed, 1);

await check("LISTEN", async (number) => {
	const sql = postgres({ max: 1, ...quiet });
	let hear;
	const heard = new Promise((resolve) => (hear = resolve));
	await sql.listen(`news${number}`, hear);
	await pools[number].notify(`news${number}`, "hello");
	assert.equal(await heard, "hello");
	await sql.end();
});

await check("closes", (number) => pools[number].end({ timeout: 5 }));
finish();
