// SPDX-License-Identifier: ISC
// graphile-worker with its defaults: LISTEN leads its workers to jobs, its statements are prepared.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import graphile from "graphile-worker";
import pg from "pg";
import { check, finish } from "./check.js";

const { Logger, run, makeWorkerUtils } = graphile;
const RUNNERS = 2;
const JOBS = 40;
const logger = new Logger(() => () => {});
const done = [];

// It polls so rarely that only a notification leads it to a job.
const options = () => ({ concurrency: 3, pollInterval: 3600000, noHandleSignals: true, logger });

const taskList = {
	add: async ({ one }, helpers) => {
		if (one % 10 === 0 && helpers.job.attempts === 1)
			throw new Error("the first attempt fails");
		const { rows } = await helpers.query("SELECT $1::int + 1 AS sum", [one]);
		done.push(`${one} ${rows[0].sum}`);
	},
};

await check(
	"migrates",
	async () => {
		const pool = new pg.Pool({ max: 2 });
		const utils = await makeWorkerUtils({ pgPool: pool, logger });
		await utils.migrate();
		await utils.release();
		await pool.end();
	},
	1,
);

await check(
	"runs jobs that notifications announce",
	async () => {
		const pools = Array.from({ length: RUNNERS }, () => new pg.Pool({ max: 4 }));
		const runners = await Promise.all(
			pools.map((pgPool) => run({ ...options(), pgPool, taskList })),
		);
		const own = new pg.Pool({ max: 2 });
		const utils = await makeWorkerUtils({ pgPool: own, logger });
		for (let one = 0; one < JOBS; one++)
			await utils.addJob("add", { one }, { maxAttempts: 3, jobKey: `job ${one}` });
		// A job that has failed runs again after a second at the soonest.
		const retry = "UPDATE graphile_worker._private_jobs SET run_at = now() WHERE attempts = 1";
		for (let turn = 0; done.length < JOBS; turn++) {
			assert.ok(turn < 3000, `only ${done.length} jobs were run`);
			if (turn % 10 === 9) {
				const { rowCount } = await own.query(`${retry} AND locked_at IS NULL`);
				if (rowCount) await own.query("NOTIFY \"jobs:insert\", '{\"count\":9}'");
			}
			await pause(20);
		}
		assert.deepEqual(
			done.toSorted(),
			Array.from({ length: JOBS }, (_, one) => `${one} ${one + 1}`).toSorted(),
		);
		for (const runner of runners) await runner.stop();
		await utils.release();
		for (const pool of [...pools, own]) await pool.end();
	},
	1,
);
finish();
