// SPDX-License-Identifier: ISC
// pg-boss with its defaults: it migrates under an advisory lock, and several of its statements make
// one query.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import PgBoss from "pg-boss";
import { check, finish } from "./check.js";

const JOBS = 30;
const bosses = [];
const done = [];

await check("starts, though all do at once", async (number) => {
	const boss = (bosses[number] = new PgBoss({ max: 3 }));
	boss.on("error", (error) => done.push(`error ${error.stack}`));
	await boss.start();
});

await check(
	"runs jobs",
	async () => {
		await bosses[0].createQueue("sums");
		for (const boss of bosses.slice(0, 3))
			await boss.work("sums", { pollingIntervalSeconds: 0.5, batchSize: 3 }, async (jobs) => {
				for (const { data } of jobs) done.push(`${data.one} ${data.one + 1}`);
			});
		for (let one = 0; one < JOBS; one++)
			await bosses[one % bosses.length].send("sums", { one }, { singletonKey: `job ${one}` });
		for (let turn = 0; done.length < JOBS; turn++) {
			assert.ok(turn < 3000, `only ${done.length} jobs were run`);
			await pause(20);
		}
		assert.deepEqual(
			done.toSorted(),
			Array.from({ length: JOBS }, (_, one) => `${one} ${one + 1}`).toSorted(),
		);
	},
	1,
);

await check("maintains its tables", (number) => bosses[number].maintain());
await check("stops", (number) => bosses[number].stop({ graceful: true, timeout: 5000 }));
finish();
