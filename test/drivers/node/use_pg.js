// SPDX-License-Identifier: ISC
// node-postgres with its defaults: unnamed statements, named ones where a query has a name.
import assert from "node:assert/strict";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import pg from "pg";
import copies from "pg-copy-streams";
import Cursor from "pg-cursor";
import { check, fails, finish, HEALS, MODE } from "./check.js";

const clients = [];

async function connected(options) {
	const client = new pg.Client(options);
	await client.connect();
	return client;
}

const value = async (client, ...query) =>
	Object.values((await client.query(...query)).rows[0])[0];

if (MODE === "console") {
	await check("the console", async () => {
		const client = await connected({ application_name: "tool", statement_timeout: 41000 });
		assert.equal(await value(client, "SELECT 1"), 1);
		assert.match(await value(client, "SELECT version()"), /^PostgreSQL/);
		await client.query("BEGIN");
		assert.ok((await client.query("SHOW POOLS")).rows.length);
		await fails("08P01", client.query("SELECT * FROM x"));
		await client.query("COMMIT");
		const named = { name: "config", text: "SHOW CONFIG" };
		for (let turn = 0; turn < 3; turn++)
			assert.ok((await client.query(named)).rows.length > 50);
		await client.end();
		const pool = new pg.Pool({ max: 2 });
		for (let turn = 0; turn < 5; turn++) assert.ok((await pool.query("SHOW LISTS")).rows.length);
		await pool.end();
	}, 1);
	finish();
}

await check("connects", async (number) => {
	const client = await connected({ application_name: `node ${number}` });
	clients[number] = client;
	assert.equal(await value(client, "SHOW application_name"), `node ${number}`);
	assert.equal(await value(client, "SHOW client_encoding"), "UTF8");
	await client.query(`CREATE TABLE item${number} (id int, name text)`);
});

await check("startup parameters stay the client's own", async (number) => {
	// All of these are parameters of the startup packet.
	const client = await connected({
		statement_timeout: 41000 + number,
		lock_timeout: 42000 + number,
		idle_in_transaction_session_timeout: 43000 + number,
		options: `-c search_path=own${number} -c jit=off`,
	});
	for (let turn = 0; turn < 10; turn++) {
		const { rows } = await client.query(
			"SELECT name, setting FROM pg_settings WHERE name = ANY($1) ORDER BY name",
			[["statement_timeout", "lock_timeout", "search_path", "jit",
				"idle_in_transaction_session_timeout"]],
		);
		assert.deepEqual(rows.map((row) => row.setting), [
			`${43000 + number}`, "off", `${42000 + number}`, `own${number}`, `${41000 + number}`,
		]);
	}
	await client.end();
});

await check("queries with parameters", async (number) => {
	for (let turn = 0; turn < 15; turn++) {
		const sum = await value(clients[number], "SELECT $1::int * 1000 + $2::int", [number, turn]);
		assert.equal(sum, number * 1000 + turn);
	}
});

await check("statements with a name", async (number) => {
	// The same names for all clients, with another text each.
	for (let turn = 0; turn < 15; turn++) {
		const text = `SELECT ${number} AS n, $1::text AS word`;
		const { rows } = await clients[number].query({ name: "words", text, values: [`w${turn}`] });
		assert.deepEqual(rows, [{ n: number, word: `w${turn}` }]);
		const same = { name: "same", text: "SELECT $1::int + 1 AS n", values: [number] };
		assert.equal(await value(clients[number], same), number + 1);
	}
	const bad = { name: "bad", text: "SELECT * FROM nowhere" };
	await fails("42P01", clients[number].query(bad));
	await fails("42P01", clients[number].query(bad));
});

await check("transactions commit and roll back", async (number) => {
	const client = clients[number];
	for (let turn = 0; turn < 10; turn++) {
		for (const [end, word] of [["COMMIT", "kept"], ["ROLLBACK", "dropped"]]) {
			await client.query("BEGIN");
			const insert = `INSERT INTO item${number} VALUES ($1, $2)`;
			await client.query({ name: "insert", text: insert, values: [turn, word] });
			await client.query(end);
		}
		await client.query("BEGIN");
		await fails("22012", client.query("SELECT 1 / $1::int", [0]));
		await fails("25P02", client.query({ name: "late", text: "SELECT 1" }));
		await client.query("ROLLBACK");
		assert.equal(await value(client, { name: "late", text: "SELECT 1" }), 1);
	}
	const { rows } = await client.query(`SELECT count(*)::int, min(name) FROM item${number}`);
	assert.deepEqual(rows, [{ count: 10, min: "kept" }]);
});

await check("several statements at once", async (number) => {
	const results = await clients[number].query("BEGIN; SELECT 1 AS a; SELECT 2 AS b; COMMIT");
	assert.deepEqual(results.map((each) => each.command), ["BEGIN", "SELECT", "SELECT", "COMMIT"]);
	await fails("42601", clients[number].query("SELECT 1; SELECT $1::int", [1]));
});

await check("queries one behind the other", async (number) => {
	const queries = Array.from({ length: 50 }, (_, i) =>
		value(clients[number], "SELECT $1::int", [i + number]),
	);
	assert.deepEqual(await Promise.all(queries), Array.from({ length: 50 }, (_, i) => i + number));
});

await check("types", async (number) => {
	const date = new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 123));
	const values = [number, String(2n ** 60n), "12345678901234567890.5", true, "ünïcödé \\ '",
		Buffer.alloc(50000, 7), date, { number }, [1, 2, number], null];
	const casts = "int8 int8 numeric bool text bytea timestamptz jsonb int[] text".split(" ");
	const text = "SELECT " + casts.map((cast, i) => `$${i + 1}::${cast} AS c${i}`).join(", ");
	for (let turn = 0; turn < 7; turn++) {
		const { rows } = await clients[number].query(text, values);
		assert.deepEqual(Object.values(rows[0]), [String(number), ...values.slice(1)]);
		const binary = { text, values, binary: true, name: "binary" };
		assert.equal((await clients[number].query(binary)).rows[0].c4, values[4]);
	}
});

await check("cursors with row limits", async (number) => {
	const cursor = clients[number].query(
		new Cursor("SELECT i + $1 AS i FROM generate_series(1, 100) AS i", [number]),
	);
	let count = 0;
	for (;;) {
		const rows = await cursor.read(7);
		if (!rows.length) break;
		for (const row of rows) assert.equal(row.i, ++count + number);
	}
	assert.equal(count, 100);
	const early = clients[number].query(new Cursor("SELECT generate_series(1, 1000)"));
	await early.read(3);
	await early.close();
	assert.equal(await value(clients[number], "SELECT $1::int", [number]), number);
});

await check("COPY in and out, and broken", async (number) => {
	const client = clients[number];
	const lines = Array.from({ length: 5000 }, (_, i) => `${i + 5000}\tcopied ${i}\n`);
	const into = () => client.query(copies.from(`COPY item${number} FROM STDIN`));
	await pipeline(Readable.from(lines), into());
	const query = `COPY (SELECT * FROM item${number} WHERE id >= 5000 ORDER BY id) TO STDOUT`;
	const chunks = [];
	for await (const chunk of client.query(copies.to(query))) chunks.push(chunk);
	assert.equal(Buffer.concat(chunks).toString(), lines.join(""));
	const broken = ["1\tone\n", "nonsense\n", ...lines];
	await fails("22P02", pipeline(Readable.from(broken), into()));
	assert.equal(await value(client, "SELECT $1::int", [number]), number);
});

await check("a statement_timeout, and a cancel", async (number) => {
	const client = clients[number];
	await client.query("BEGIN; SET LOCAL statement_timeout = 100");
	await fails("57014", client.query("SELECT pg_sleep(60)"));
	await client.query("ROLLBACK");
	const sleep = client.query("SELECT pg_sleep(60)");
	// node-postgres has no method for it: another client sends the request.
	const timer = setInterval(() => {
		const messenger = new pg.Client({});
		messenger.connection.on("connect", () => {
			messenger.connection.cancel(client.processID, client.secretKey);
		});
		messenger.connection.on("error", () => {});
		messenger.connection.connect(messenger.port, messenger.host);
	}, 200);
	await fails("57014", sleep);
	clearInterval(timer);
	for (;;) {
		// A late request may still hit this connection.
		const answer = await value(client, "SELECT $1::int", [number]).catch((error) => error.code);
		if (answer === number) break;
		assert.equal(answer, "57014");
	}
});

await check("a changed table", async (number) => {
	const client = clients[number];
	await client.query(`CREATE TABLE change${number} (a int); INSERT INTO change${number} VALUES (1)`);
	const query = { name: "all", text: `SELECT * FROM change${number}` };
	for (let turn = 0; turn < 3; turn++)
		assert.deepEqual((await client.query(query)).rows, [{ a: 1 }]);
	await client.query(`ALTER TABLE change${number} ADD COLUMN b text DEFAULT 'new'`);
	if (!HEALS) {
		await fails("0A000", client.query(query));
		return;
	}
	for (let turn = 0; turn < 3; turn++)
		assert.deepEqual((await client.query(query)).rows, [{ a: 1, b: "new" }]);
});

await check("pools", async (number) => {
	const pool = new pg.Pool({ max: 3, application_name: `pool ${number}` });
	const all = Array.from({ length: 30 }, (_, i) => pool.query("SELECT $1::int AS i", [i]));
	const rows = (await Promise.all(all)).map((each) => each.rows[0].i);
	assert.deepEqual(rows, Array.from({ length: 30 }, (_, i) => i));
	const client = await pool.connect();
	assert.equal(await value(client, "SHOW application_name"), `pool ${number}`);
	client.release();
	await pool.end();
});

await check("LISTEN", async (number) => {
	const client = await connected();
	await client.query(`LISTEN news${number}`);
	const heard = new Promise((resolve) => client.on("notification", resolve));
	await clients[number].query("SELECT pg_notify($1, 'hello')", [`news${number}`]);
	assert.equal((await heard).payload, "hello");
	await client.end();
});

await check("closes", (number) => clients[number].end());
finish();
