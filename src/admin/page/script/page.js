// SPDX-License-Identifier: ISC
// Polling, and the begin of the page.

const STATE_EVERY = 2000;
const HISTORY_EVERY = 10000;
const HISTORY_LARGE = 200000; // characters from which the history is asked for less often
const TIMEOUT = 10000;
const RETRY_MOST = 30000;

let state = null;
const poll = { timer: null, running: false, failures: 0, answered: null, history: -Infinity, every: HISTORY_EVERY };

async function get(path) {
	const answer = await fetch(path, { cache: "no-store", credentials: "same-origin", redirect: "error",
		signal: AbortSignal.timeout(TIMEOUT) });
	if (answer.status === 401) throw new Error("it refuses the password: reload this page");
	if (!answer.ok) throw new Error(`it answers with HTTP ${answer.status}`);
	return answer.text();
}

async function getHistory() {
	const text = await get("/api/history");
	poll.every = text.length > HISTORY_LARGE ? 6 * HISTORY_EVERY : HISTORY_EVERY;
	poll.history = performance.now();
	Object.assign(hour, JSON.parse(text));
}

async function ask() {
	const next = JSON.parse(await get("/api/state"));
	const restarted = state && state.started !== next.started;
	if (!state || restarted) {
		errorsAtFirst = new Map(next.totals.errors.map((error) => [error.error, error.count]));
		poll.history = -Infinity;
	}
	const due = performance.now() - poll.history >= poll.every;
	if (due) await getHistory();
	state = next;
	if (due) showHistory();
	showState();
	if (restarted) poll.restarted = state.started;
}

function showLive() {
	const lost = poll.failures > 0;
	$("lost").hidden = !lost;
	document.body.classList.toggle("old", lost);
	if (lost) {
		const since = poll.answered ? `since ${clock.format(poll.lost)}` : "";
		setText($("lost-text"), `pgusher does not answer ${since}: ${poll.reason}. ${
			poll.answered ? `The figures are those of ${clock.format(poll.answered)}. ` : ""}Next try in ${seconds(poll.delay / 1000)}.`);
		setText($("live-text"), "Not live");
	} else {
		setText($("live-text"), `Live, ${at(clock, state.now)}${poll.restarted ? `; restarted at ${at(clock, poll.restarted)}` : ""}`);
	}
}

async function run() {
	if (poll.running || document.hidden) return;
	clearTimeout(poll.timer);
	poll.running = true;
	try {
		await ask();
		$("figures").hidden = false;
		poll.failures = 0;
		poll.answered = new Date();
		poll.delay = STATE_EVERY;
	} catch (error) {
		poll.lost = poll.failures ? poll.lost : new Date();
		poll.failures++;
		poll.reason = error.name === "TimeoutError" ? `no answer within ${seconds(TIMEOUT / 1000)}`
			: error instanceof SyntaxError ? "its answer is not complete"
			: error instanceof TypeError && !/fetch/i.test(error.message) ? `its answer has another form (${error.message})`
			: error instanceof TypeError ? "no connection" : error.message;
		poll.delay = Math.min(RETRY_MOST, STATE_EVERY * 2 ** (poll.failures - 1));
	}
	poll.running = false;
	showLive();
	if (!document.hidden) poll.timer = setTimeout(run, poll.delay);
}

function begin() {
	$("where").append(verdictBar);
	makeTables();
	makeCharts();
	$("hour-pool").addEventListener("change", hourChosen);
	$("pools-find").addEventListener("input", () => state && showPools());
	$("pools-all").addEventListener("click", () => {
		pools.all = !pools.all;
		showPools();
	});
	$("pools-table").addEventListener("pointerenter", (event) => (pools.held = event.pointerType === "mouse"));
	$("pools-table").addEventListener("pointerleave", () => (pools.held = false));
	$("retry").addEventListener("click", run);
	document.addEventListener("visibilitychange", () => {
		clearTimeout(poll.timer);
		run();
	});
	run();
}

begin();
