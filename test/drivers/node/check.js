// SPDX-License-Identifier: ISC
// What the programs in node share: clients that work at once, and a report in TAP.
import assert from "node:assert/strict";

export const CLIENTS = 6;
export const MODE = process.env.DRIVER_MODE ?? "transaction";
// A statement fails because a table has changed: with PostgreSQL and in session mode. In transaction
// mode the pooler replays it.
export const HEALS = MODE === "transaction";
export const numbers = [...Array(CLIENTS).keys()];

const results = [];

// Run body(number) once for each client, all at once; all have to succeed.
export async function check(name, body, count = CLIENTS) {
	const ended = await Promise.allSettled(numbers.slice(0, count).map((number) => body(number)));
	const failure = ended.find((each) => each.status === "rejected")?.reason;
	results.push(!failure);
	console.log(`${failure ? "not ok" : "ok"} ${results.length} - ${name}`);
	if (failure) console.log(String(failure.stack ?? failure).replace(/^/gm, "# "));
}

// The error with this SQLSTATE of a rejected promise.
export async function fails(code, promise) {
	const error = await promise.then(
		() => assert.fail(`no error ${code}`),
		(reason) => reason,
	);
	assert.equal(error.code, code, error.stack);
	return error;
}

export function finish() {
	console.log(`1..${results.length}`);
	process.exit(results.length && results.every(Boolean) ? 0 : 1);
}

process.on("unhandledRejection", (reason) => {
	console.log(`not ok - unhandled rejection\n# ${reason?.stack ?? reason}`);
	process.exit(1);
});
