// SPDX-License-Identifier: ISC
// The sentence at the top, and the answers to the four questions: is it pgusher or PostgreSQL, which pool holds the
// servers, since when, and what to change.

const NO_SETTING = "PostgreSQL or the way to it, not a setting.";
const BRIEF = 0.1; // seconds: shorter waits are no cause for concern
const HELD = 10; // seconds: an idle transaction of this age holds a server for no use

// Since when a series has been above zero: a time in seconds, or null.
function aboveZeroSince(list) {
	let number = (list || []).length;
	while (number > 0 && list[number - 1] > 0) number--;
	return number < (list || []).length ? timeOfPoint(number) : null;
}

// The usual 99th percentile of queries before this time: the median of the hour; null when unknown.
function usualQueryTime(id, before) {
	const list = (seriesOf(id)?.query_p99_ms || []).filter((value, number) => known(value) && timeOfPoint(number) < before);
	return list.length < 6 ? null : list.sort((a, b) => a - b)[list.length >> 1];
}

function isSlower(pool, before) {
	const usual = usualQueryTime(pool.id, before);
	const now = timeOf(pool, "query_ms", "p99");
	return known(now) && (usual === null ? timeOf(pool, "query_ms", "p50") >= 1000 : now >= 3 * usual && now >= 50);
}

// Whether clients hold servers between their queries: transactions take much longer than all their queries but a few.
function isHeld(pool) {
	const transaction = timeOf(pool, "transaction_ms", "p50");
	return known(transaction) && transaction >= 10 && transaction >= 4 * (timeOf(pool, "query_ms", "p99") || 0);
}

// The codes of advice on a full pool. It knows for what its servers are in use, which the figures below only suggest.
const FULL = {
	pool_full: "is full, PostgreSQL is not the limit",
	pool_busy: "is full because PostgreSQL is busy",
	pool_held: "is full because transactions hold servers between queries",
	pool_session: "is full because clients keep servers for their sessions",
	pool_pinned: "is full because servers are pinned to clients",
};
const adviceOnFull = (pool) => state.advice.find((advice) => pool && advice.pool === pool.id && FULL[advice.code]);

// Why clients of this pool wait: a sentence, what to change where no advice says it, and whether PostgreSQL is the cause.
function causeOf(pool, before) {
	const name = poolName(pool);
	if (pool.paused) return [`${name} is paused`, "Nothing: RESUME in the console."];
	const host = pool.servers.active + pool.servers.idle === 0 ? state.hosts.find((item) => item.up === false)
		: state.hosts.find((item) => item.id === pool.host);
	if (host?.up === false) return [`PostgreSQL is not reached, ${line(host.name)} is down`, NO_SETTING, true];
	if (isFull(pool)) {
		const [head, ...rest] = causeOfFull(pool, name, before);
		const open = pool.oldest_idle_transaction >= HELD && !head.includes("transactions");
		return [open ? `${head}. A transaction is left open` : head, ...rest];
	}
	if (pool.servers.login + pool.servers.tested > 0)
		return [`new servers of ${name} log in at PostgreSQL`, "min_pool_size keeps servers ready.", true];
	return [`${name} is not full, but a limit of its database, user or host is reached`,
		"max_db_connections, max_user_connections, or the limit of the host."];
}

function causeOfFull(pool, name, before) {
	const advice = adviceOnFull(pool);
	if (advice) {
		const slower = advice.code === "pool_full" && usualQueryTime(pool.id, before) !== null && isSlower(pool, before);
		const busy = advice.code === "pool_busy";
		return [`${name} ${slower ? "is full, and its queries are slower than usual" : FULL[advice.code]}`,
			busy ? "The queries: log_min_duration shows the slow ones." : `See the advice on ${name}.`, slower || busy];
	}
	if (isSlower(pool, before))
		return [`${name} is full because PostgreSQL is slow`, "The queries: log_min_duration shows the slow ones.", true];
	if (pool.servers.pinned * 2 >= pool.size)
		return [`${name} is full because servers are pinned to clients`, "What pins: SHOW PINS has the causes."];
	if (isHeld(pool)) return [`${name} is full because transactions hold servers between queries`,
		"The application: it waits inside of transactions."];
	return [`${name} is full, PostgreSQL is not the limit`, pool.oldest_idle_transaction >= HELD
		? "idle_transaction_timeout ends the transaction that is left open."
		: "pool_size, if PostgreSQL has room for more servers."];
}

// The times of the pool's clients in milliseconds: in the queue and at PostgreSQL.
function serverTimes(pool) {
	const waits = [timeOf(pool, "wait_ms", "p99"), pool.clients.waiting ? pool.longest_wait * 1000 : null].filter(known);
	const wait = waits.length ? Math.max(...waits) : null;
	const query = timeOf(pool, "query_ms", "p99");
	return { wait, query };
}

function holderOf(pool) {
	const idle = pool.oldest_idle_transaction;
	return [`${poolName(pool)}: ${count(pool.servers.active)}${pool.size ? ` of ${count(pool.size)}` : ""} servers active`,
		pool.servers.pinned ? `${count(pool.servers.pinned)} pinned` : "",
		known(pool.oldest_transaction) && pool.oldest_transaction >= 1
			? `oldest transaction ${seconds(pool.oldest_transaction)}` : "",
		known(idle) && idle >= 1 ? `one idle in its transaction for ${seconds(idle)}` : "",
	].filter(Boolean).join(", ");
}

function verdictOnWaits(pool) {
	const since = aboveZeroSince(seriesOf(pool.id)?.waiting) ?? state.now - (pool.longest_wait || 0);
	const [cause, hint, guilty] = causeOf(pool, since);
	return {
		level: pool.longest_wait >= 1 || guilty ? "critical" : "warning",
		head: `Clients wait: ${cause}`,
		hint, since, pool,
	};
}

function verdictWithoutWaits() {
	const down = state.hosts.filter((host) => host.up === false);
	const failing = state.pools.filter((pool) => pool.errors_per_second > 0);
	const busiest = [...state.pools].sort((a, b) => b.servers.active - a.servers.active)[0] || null;
	const slower = state.pools.find((pool) => isSlower(pool, state.now - 60));
	const idle = [...state.pools].sort((a, b) => (b.oldest_idle_transaction || 0) - (a.oldest_idle_transaction || 0))[0];
	const worst = ["critical", "warning"].find((level) => state.advice.some((advice) => advice.severity === level));
	if (down.length) return { level: "critical", pool: busiest, hint: NO_SETTING, head: down.length === 1
		? `PostgreSQL is not reached: ${line(down[0].name)} is down` : `PostgreSQL is not reached: ${down.length} hosts are down` };
	if (slower) return { level: "warning", pool: slower, head: `PostgreSQL answers ${poolName(slower)} slower than usual` };
	if (failing.length) return { level: "warning", pool: failing[0], head: `No client waits, but queries fail in ${
		failing.length === 1 ? poolName(failing[0]) : `${failing.length} pools`}` };
	if (idle && idle.oldest_idle_transaction >= HELD)
		return { level: worst || "info", pool: idle, head: `No client waits, but a transaction of ${poolName(idle)} is left open`,
			since: state.now - idle.oldest_idle_transaction };
	if (worst) return { level: worst, pool: busiest, head: "No client waits, but there is advice" };
	if (!state.process.clients) return { level: "ok", pool: busiest, head: "No client is connected" };
	return { level: "ok", pool: busiest, head: "No client waits: pgusher and PostgreSQL keep up" };
}

function verdict() {
	const waiting = state.pools.filter((pool) => pool.clients.waiting > 0)
		.sort((a, b) => (b.longest_wait || 0) - (a.longest_wait || 0) || b.clients.waiting - a.clients.waiting);
	const stopped = { paused: "paused: clients wait until RESUME", suspended: "suspended: clients wait until RESUME",
		shutdown: "shutting down: it accepts no new clients" }[state.state];
	if (stopped) return { level: "warning", pool: waiting[0] || null, head: `pgusher is ${stopped}`,
		since: aboveZeroSince(seriesOf(0)?.waiting), change: state.state === "shutdown" ? "Nothing." : "Nothing: RESUME in the console." };
	if (waiting.length && waiting[0].longest_wait >= BRIEF) return verdictOnWaits(waiting[0]);
	const found = verdictWithoutWaits();
	if (waiting.length) found.head = found.head.replace("No client waits", "Clients wait only briefly");
	return found;
}

// The settings to change: those of the advice on why the pool is full and on its open transaction; without, the worst one's.
function settingsToChange(pool) {
	const ranks = ["critical", "warning", "info"];
	const full = adviceOnFull(pool);
	const [first] = full ? [full] : state.advice.filter((advice) => advice.setting).sort((a, b) =>
		ranks.indexOf(a.severity) - ranks.indexOf(b.severity) ||
		(pool && b.pool === pool.id) - (pool && a.pool === pool.id));
	const open = full && state.advice.find((advice) => advice.pool === pool.id && advice.code === "idle_transaction");
	const settings = [...new Set([first?.setting, open?.setting])].filter(Boolean).map(line);
	if (!settings.length) return null;
	const subject = subjectOf(first);
	return `${settings.join(", ")}: see the advice${subject === UNKNOWN ? "" : ` on ${subject}`}`;
}

function showVerdict() {
	const { level, head, since, pool, hint, change } = verdict();
	setAttribute($("verdict"), "data-level", level);
	setText($("headline"), head);
	const times = pool && serverTimes(pool);
	setText($("of-queue"), times ? `up to ${duration(times.wait)} in pgusher’s queue` : "No query yet.");
	setText($("of-server"), times ? `${duration(times.query)} at PostgreSQL (p99)` : "");
	setBar(verdictBar, (times?.wait || 0) + (times?.query || 0), [["queue", times?.wait || 0], ["active", times?.query || 0]]);
	setText($("holder"), pool ? holderOf(pool) : "None.");
	setText($("since"), since ? `${at(clock, since)}, ${seconds(Math.max(0, state.now - since))} ago` : level === "ok"
		? "All is well." : "Seen now; the charts show the last hour.");
	setText($("change"), change || settingsToChange(pool) || hint ||
		(state.advice.length ? "See the advice." : level === "ok" ? "Nothing." : "There is no advice yet."));
	const waiting = sum(state.pools, (item) => item.clients.waiting);
	const title = waiting ? `(${count(waiting)} waiting) pgusher` : "pgusher";
	if (document.title !== title) document.title = title;
}

const verdictBar = newBar();
