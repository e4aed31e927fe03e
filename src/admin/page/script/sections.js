// SPDX-License-Identifier: ISC
// Advice, hosts, errors, the process, slow queries.

const tables = {};
let showProcessFacts = null;
let errorsAtFirst = new Map();

const onPool = (item) => (item.pool === null ? UNKNOWN : nameOf(state.pools, item.pool));

// What advice is about: a pool, a database or a user; hosts and the process are in its text.
function subjectOf(advice) {
	const { database, user } = advice;
	if (state.pools.some((pool) => pool.id === advice.pool)) return onPool(advice);
	return database === null ? (user === null ? UNKNOWN : `user ${line(user)}`)
		: line(user === null ? database : `${database} / ${user}`);
}

function whereCell(cell) {
	const bar = newBar();
	cell.append(bar);
	return (query) => setBar(bar, query.queue_ms + query.server_ms + query.client_ms,
		[["queue", query.queue_ms], ["active", query.server_ms], ["client", query.client_ms]]);
}

function slowText(cell) {
	const text = make("code", { dir: "auto" });
	cell.append(text);
	return (query) => setText(text, shown(query.text));
}

function makeTables() {
	tables.advice = newTable($("advice-table"), "Advice", [
		["Severity", null, null, "text", chip((advice) => advice.severity, (advice) => advice.severity)],
		["Advice", null, null, "words", named((advice) => shown(advice.text))],
		["Setting", null, null, "setting", named((advice) => line(advice.setting ?? UNKNOWN))],
		["Pool", null, null, "name", named(subjectOf)],
		["For", (advice) => advice.seconds, seconds],
		["Code", (advice) => advice.code, String, "quiet"],
	], (advice) => advice.key);
	tables.pools = newTable($("pools-table"), "Pools", POOL_COLUMNS, (pool) => pool.id, poolDetails);
	makeSortable(tables.pools.heads);
	tables.hosts = newTable($("hosts-table"), "Hosts", [
		["Host", null, null, "name", named((host) => line(host.name))],
		["Role", (host) => host.role, String, "text"],
		["State", null, null, "text", chip((host) => ({ true: "up", false: "down" })[host.up] ?? UNKNOWN,
			(host) => ({ true: "ok", false: "critical" })[host.up] ?? "info")],
		["Connections", (host) => host.connections, count],
		["Time to connect", (host) => host.connect_ms, duration],
		["Lag", (host) => host.lag_bytes, bytes],
		["Lag in time", (host) => host.lag_seconds, seconds],
	], (host) => host.id);
	tables.slow = newTable($("slow-table"), "Slow queries, the newest first", [
		["Last at", (query) => query.at, (time) => at(clock, time), "text"],
		["Pool", null, null, "name", named(onPool)],
		["Queries", (query) => query.count, count],
		["Longest", (query) => query.total_ms, duration],
		["In the queue", (query) => query.queue_ms, duration, "number of-queue"],
		["At the server", (query) => query.server_ms, duration, "number of-active"],
		["To the client", (query) => query.client_ms, duration, "number of-client"],
		["Share", null, null, "wide", whereCell],
		["Setting", null, null, "setting", named((query) => line(query.setting ?? UNKNOWN))],
		["Rows", (query) => query.rows, count],
		["Bytes", (query) => query.bytes, bytes],
		["Application", null, null, "name", named((query) => line(query.application ?? UNKNOWN))],
	], (query) => query.key, slowText, (query) => query.text !== null);
	tables.errors = newTable($("errors-table"), "Errors", [
		["Error", null, null, "name", named((error) => line(error.error))],
		["Since the start", (error) => error.count, count],
		["While this page is open", (error) => error.count - (errorsAtFirst.get(error.error) ?? 0), count],
	], (error) => error.error);
	showProcessFacts = newFacts($("process-list"));
}

function showProcess() {
	const { process, totals } = state;
	const near = (value, limit) => (known(value) && limit > 0 && value >= 0.9 * limit ? "warning" : null);
	showProcessFacts([
		["Clients", `${count(process.clients)} of ${count(process.max_clients)}`, near(process.clients, process.max_clients)],
		["Logins in progress", count(process.logins)],
		["Servers", count(process.servers)],
		["Transactions/s", rate(totals.transactions_per_second)],
		["Queries/s", rate(totals.queries_per_second)],
		["Received/s", bytes(totals.received_per_second)],
		["Sent/s", bytes(totals.sent_per_second)],
		["Processor", known(process.cpu) ? `${digits(process.cpu * 100)} % of a core` : UNKNOWN, near(process.cpu, 1)],
		["Memory", bytes(process.memory_bytes)],
		["Descriptors", `${count(process.fds)} of ${count(process.max_fds)}`, near(process.fds, process.max_fds)],
		...process.certificates.map(({ side, seconds_left: left }, number) => [
			`Certificate ${number + 1}, for ${side}s`,
			known(left) && left <= 0 ? "has ended" : `ends in ${seconds(left)}`,
			left < 14 * 86400 ? "warning" : null,
		]),
		["Started", at(day, state.started)],
		["Running for", seconds(state.now - state.started)],
	]);
}

// The items with keys: what tells one from another, and a number where that is the same.
function keyed(items, keyOf) {
	const times = new Map();
	return items.map((item) => {
		const key = keyOf(item);
		times.set(key, (times.get(key) || 0) + 1);
		return { ...item, key: `${key} ${times.get(key)}` };
	});
}

function showState() {
	setText($("state"), state.state);
	$("state").hidden = state.state === "active";
	setText($("version"), `${line(state.version)}, compatible with ${line(state.compat)}.`);
	$("hidden-names").hidden = state.details;
	showVerdict();
	tables.advice.update(keyed(state.advice, (advice) => `${advice.code} ${advice.pool} ${advice.database} ${advice.user}`));
	showPools();
	tables.hosts.update(state.hosts);
	tables.slow.update(keyed(state.slow, (query) => `${query.pool} ${query.setting} ${query.application} ${query.text}`));
	tables.errors.update(state.totals.errors);
	showProcess();
	showNow();
}
