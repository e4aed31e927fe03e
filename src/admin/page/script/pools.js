// SPDX-License-Identifier: ISC
// The table of pools.

const POOLS_AT_FIRST = 20;

const SERVER_STATES = ["active", "idle", "used", "tested", "login"];
const PERCENTILES = ["p50", "p90", "p99", "max"];
const timeOf = (pool, name, percentile) => pool?.[name]?.[percentile] ?? null;

const servers = (pool) => sum(SERVER_STATES, (name) => pool.servers[name]);
const isFull = (pool) => pool.size > 0 && servers(pool) - pool.servers.idle >= pool.size;

function poolCell(cell, body) {
	const name = make("bdi", { dir: "auto" });
	const mark = make("span", { class: "chip", "data-level": "warning" });
	const button = make("button", { type: "button", class: "opens", "aria-expanded": "false" }, name);
	button.addEventListener("click", () => {
		body.second.hidden = !body.second.hidden;
		setAttribute(button, "aria-expanded", String(!body.second.hidden));
		body.update(body.item);
	});
	cell.append(button, mark);
	return (pool) => {
		setText(name, poolName(pool));
		setText(mark, pool.paused ? "paused" : isFull(pool) && pool.clients.waiting ? "full" : "");
	};
}

function serversCell(cell) {
	const text = make("span");
	const bar = newBar();
	cell.append(text, bar);
	return (pool) => {
		const { active, idle, used, tested, login } = pool.servers;
		setText(text, pool.size ? `${count(servers(pool))} of ${count(pool.size)}` : count(servers(pool)));
		setBar(bar, Math.max(pool.size, servers(pool)),
			[["active", active], ["login", login + tested], ["idle", idle + used]]);
	};
}

function poolDetails(cell) {
	const list = make("dl", { class: "facts" });
	const showFacts = newFacts(list);
	const mount = make("div", { class: "times" });
	const times = newTable(mount, "Times by percentile", [
		["Time", (row) => row[0], String, "text"],
		...PERCENTILES.map((name) => [name, (row) => timeOf(row[2], row[1], name), duration]),
	], (row) => row[1]);
	const show = make("button", { type: "button" }, "Show its last hour");
	show.addEventListener("click", () => {
		$("hour-pool").value = show.value;
		hourChosen();
		$("hour").scrollIntoView({ block: "nearest" });
	});
	cell.append(make("div", { class: "details" }, list, mount, show));
	return (pool) => {
		showFacts([
			["Name", line(pool.name)],
			["Pool mode", pool.mode],
			["Size", count(pool.size) + (pool.reserve ? ` + ${count(pool.reserve)} of the reserve` : "")],
			["Host", nameOf(state.hosts, pool.host)],
			["Servers by state", SERVER_STATES.map((name) => `${count(pool.servers[name])} ${name}`).join(", ")],
			["Idle in transaction", seconds(pool.oldest_idle_transaction)],
			["Queries/s", rate(pool.queries_per_second)],
		]);
		times.update([["Query", "query_ms", pool], ["Transaction", "transaction_ms", pool], ["Wait", "wait_ms", pool]]);
		show.value = pool.id;
		show.hidden = !seriesOf(pool.id);
	};
}

const POOL_COLUMNS = [
	["Pool", poolName, null, "name", poolCell],
	["Waiting", (pool) => pool.clients.waiting, count],
	["Longest wait", (pool) => pool.longest_wait, seconds],
	["Clients active", (pool) => pool.clients.active, count],
	["Clients idle", (pool) => pool.clients.idle, count],
	["Servers", servers, null, "number", serversCell],
	["Pinned", (pool) => pool.servers.pinned, count],
	["Oldest transaction", (pool) => pool.oldest_transaction, seconds],
	["Trans./s", (pool) => pool.transactions_per_second, rate],
	["Errors/s", (pool) => pool.errors_per_second, rate],
	["Query p99", (pool) => timeOf(pool, "query_ms", "p99"), duration],
	["Wait p99", (pool) => timeOf(pool, "wait_ms", "p99"), duration],
];
const pools = { order: 2, turned: false, all: false, ids: [], held: false };

// By the chosen column, largest first, but names from A to Z.
function poolsInOrder() {
	const by = POOL_COLUMNS[pools.order][1];
	const sign = pools.turned ? -1 : 1;
	const wanted = $("pools-find").value.trim().toLowerCase();
	const list = state.pools.filter((pool) => poolName(pool).toLowerCase().includes(wanted)).sort((a, b) =>
		(pools.order === 0 ? sign * by(a).localeCompare(by(b), "en", { numeric: true })
			: sign * ((by(b) ?? -1) - (by(a) ?? -1))) ||
		b.clients.waiting - a.clients.waiting || b.servers.active - a.servers.active || a.id - b.id);
	if (pools.held) { // rows stay where they are under the pointer
		const place = new Map(pools.ids.map((id, number) => [id, number]));
		list.sort((a, b) => (place.get(a.id) ?? 1e9) - (place.get(b.id) ?? 1e9));
	}
	pools.ids = list.map((pool) => pool.id);
	return list;
}

function showPools() {
	const list = poolsInOrder();
	tables.pools.update(pools.all ? list : list.slice(0, POOLS_AT_FIRST));
	tables.pools.heads.forEach((head, number) => setAttribute(head, "aria-sort",
		number !== pools.order ? null : pools.turned === (number === 0) ? "descending" : "ascending"));
	setText($("pools-count"), count(state.pools_total) + (state.pools_total > state.pools.length
		? `, of which ${count(state.pools.length)} with the most clients are here` : ""));
	$("pools-find-label").hidden = state.pools.length <= POOLS_AT_FIRST;
	$("pools-all").hidden = list.length <= POOLS_AT_FIRST;
	setText($("pools-all"), pools.all ? `Show ${POOLS_AT_FIRST}` : `Show all ${count(list.length)}`);
}

function makeSortable(heads) {
	heads.forEach((head, number) => {
		const button = make("button", { type: "button", class: "sorts" }, head.textContent);
		head.replaceChildren(button);
		button.addEventListener("click", () => {
			pools.turned = pools.order === number && !pools.turned;
			pools.order = number;
			pools.ids = [];
			showPools();
		});
	});
}
