// SPDX-License-Identifier: ISC
// The page of figures: polls /api/state and /api/history and shows them. Names come from outside:
// they reach the document as text nodes only. Nodes are made once and then changed in place.
"use strict";

const STATE_EVERY = 2000;
const HISTORY_EVERY = 10000;
const HISTORY_LARGE = 200000; // characters from which the history is asked for less often
const TIMEOUT = 10000;
const RETRY_MOST = 30000;
const POOLS_AT_FIRST = 20;
const UNKNOWN = "–";

// --- nodes ------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
	node.append(...children);
	return node;
}

const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) =>
	fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function setText(node, text) {
	text = String(text);
	if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, name, value) {
	if (value === null || value === false) node.removeAttribute(name);
	else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Put the nodes into the parent in this order, move only those that are elsewhere, keep the focus.
function arrange(parent, nodes) {
	const focused = document.activeElement;
	const kept = new Set(nodes);
	for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
	nodes.forEach((node, at) => {
		if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] || null);
	});
	if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

// --- figures as text --------------------------------------------------------------------------

const known = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const digits = (value) => {
	if (value >= 100 || Number.isInteger(value)) return grouped.format(value);
	return value.toFixed(value < 1 ? 2 : 1);
};
const count = (value) => (known(value) ? grouped.format(value) : UNKNOWN);
const rate = (value) => (known(value) ? digits(value) : UNKNOWN);
const at = (format, seconds) => (known(seconds) ? format.format(new Date(seconds * 1000)) : UNKNOWN);

function seconds(value) {
	if (!known(value)) return UNKNOWN;
	if (value < 1) return value === 0 ? "0 s" : `${digits(value * 1000)} ms`;
	if (value < 99.95) return `${digits(value)} s`;
	for (const [unit, size, part, small] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
		if (value < size) continue;
		const rest = Math.floor((value % size) / small);
		return `${Math.floor(value / size)} ${unit}${rest ? ` ${rest} ${part}` : ""}`;
	}
	return UNKNOWN;
}

const milliseconds = (value) => (known(value) && value < 1000 ? `${digits(value)} ms` : seconds(value / 1000));
const duration = (value) => (known(value) ? milliseconds(value) : UNKNOWN);

function bytes(value) {
	if (!known(value)) return UNKNOWN;
	let unit = 0;
	while (value >= 1000 && unit < 5) value /= 1000, unit++;
	return `${digits(value)} ${["B", "kB", "MB", "GB", "TB", "PB"][unit]}`;
}

// A text from outside: what would not show, or would turn the text around, is spelt out.
function shown(text) {
	return String(text).replace(
		/[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
		(found) => {
			const code = found.codePointAt(0);
			if (code < 32) return String.fromCodePoint(0x2400 + code);
			return code === 127 ? "␡" : `\\u${code.toString(16).padStart(4, "0")}`;
		},
	);
}

const line = (text) => shown(text).replace(/\t/g, "␉").replace(/\n/g, "␊");
const poolName = (pool) =>
	line(pool.database === null ? pool.name : pool.user === null ? pool.database : `${pool.database} / ${pool.user}`);
const nameOf = (list, id) => {
	const found = list.find((item) => item.id === id);
	return found ? (list === state.pools ? poolName(found) : line(found.name)) : UNKNOWN;
};
const sum = (list, of) => list.reduce((total, item) => total + (of(item) || 0), 0);
const most = (list, of) => list.reduce((best, item) => Math.max(best, of(item) || 0), 0);

// --- tables and lists of facts ------------------------------------------------------------------

// A bar of parts of a whole: [class, size]...; the text beside it says the same.
function setBar(node, whole, parts) {
	const shape = `${whole}:${parts}`;
	if (node.shape === shape) return;
	node.shape = shape;
	setAttribute(node, "viewBox", `0 0 ${Math.max(whole, 0.001)} 1`);
	let from = 0;
	node.replaceChildren(...parts.filter((part) => part[1] > 0).map(([name, size]) => {
		from += size;
		return draw("rect", { class: name, x: from - size, y: 0, width: size, height: 1 });
	}));
}
const newBar = () => draw("svg", { class: "parts", preserveAspectRatio: "none", "aria-hidden": "true" });

// A table whose rows are updated in place. A column is [title, value of an item, text of a value, class, maker]; a
// maker makes the content of a cell and returns the function that updates it. more(cell), likewise, makes a second
// row, which is shown for the items of which isOpen is true, or where a button opens it.
function newTable(mount, caption, columns, keyOf, more, isOpen) {
	const head = make("tr", { role: "row" });
	const table = make("table", { role: "table" }, make("caption", { class: "unseen" }, caption),
		make("thead", { role: "rowgroup" }, head));
	const heads = columns.map(([title, , , kind]) =>
		make("th", { scope: "col", role: "columnheader", class: kind ?? "number" }, title));
	let bodies = new Map();
	head.append(...heads);
	mount.append(table);

	function newBody() {
		const row = make("tr", { role: "row" });
		const body = make("tbody", { role: "rowgroup" }, row);
		const updates = columns.map(([title, value, text, kind, maker], number) => {
			const cell = make(number ? "td" : "th", { role: number ? "cell" : "rowheader", class: kind ?? "number" });
			setAttribute(cell, number ? "data-label" : "scope", number ? title : "row");
			row.append(cell);
			if (maker) return maker(cell, body);
			return (item) => {
				setText(cell, text(value(item)));
				setAttribute(cell, "data-none", !value(item) && !kind);
			};
		});
		if (more) {
			const cell = make("td", { role: "cell", colspan: columns.length });
			const update = more(cell);
			body.second = make("tr", { role: "row", class: "more", hidden: "" }, cell);
			body.append(body.second);
			updates.push((item) => {
				if (isOpen) body.second.hidden = !isOpen(item);
				if (!body.second.hidden) update(item);
			});
		}
		body.update = (item) => {
			body.item = item;
			for (const update of updates) update(item);
		};
		return body;
	}

	const update = (items) => {
		const used = new Map(items.map((item) => [keyOf(item), bodies.get(keyOf(item)) || newBody()]));
		for (const item of items) used.get(keyOf(item)).update(item);
		bodies = used;
		arrange(table, [table.caption, table.tHead, ...used.values()]);
		table.hidden = items.length === 0;
		const none = mount.nextElementSibling;
		if (none?.matches(".none")) none.hidden = items.length > 0;
	};
	return { heads, update };
}

// Makers of cells: a text from outside, and a word with the colour of a level.
const named = (text) => (cell) => {
	const name = make("bdi", { dir: "auto" });
	cell.append(name);
	return (item) => setText(name, text(item));
};
const chip = (text, level) => (cell) => {
	const word = make("span", { class: "chip" });
	cell.append(word);
	return (item) => {
		setText(word, text(item));
		setAttribute(word, "data-level", level(item));
	};
};

// A list of [title, text, level], updated in place.
function newFacts(list) {
	const nodes = new Map();
	return (facts) => arrange(list, facts.map(([title, text, level]) => {
		const node = nodes.get(title) || make("div", null, make("dt", null, line(title)), make("dd"));
		nodes.set(title, node);
		setText(node.lastChild, text);
		setAttribute(node, "data-level", level || null);
		return node;
	}));
}

// --- pools ------------------------------------------------------------------------------------

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

// --- the other sections -----------------------------------------------------------------------

const tables = {};
let showProcessFacts = null;
let errorsAtFirst = new Map();

const onPool = (item) => (item.pool === null ? UNKNOWN : nameOf(state.pools, item.pool));

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
		["Pool", null, null, "name", named((advice) => (advice.pool === null ? "all" : onPool(advice)))],
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
		["At", (query) => query.at, (time) => at(clock, time), "text"],
		["Pool", null, null, "name", named(onPool)],
		["Total", (query) => query.total_ms, duration],
		["In the queue", (query) => query.queue_ms, duration, "number of-queue"],
		["At the server", (query) => query.server_ms, duration, "number of-active"],
		["To the client", (query) => query.client_ms, duration, "number of-client"],
		["Share", null, null, "wide", whereCell],
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
	tables.advice.update(keyed(state.advice, (advice) => `${advice.code} ${advice.pool}`));
	showPools();
	tables.hosts.update(state.hosts);
	tables.slow.update(keyed(state.slow, (query) => query.at));
	tables.errors.update(state.totals.errors);
	showProcess();
	showNow();
}

// --- the last hour ----------------------------------------------------------------------------

const WIDTH = 360;
const HEIGHT = 60;
const history = { step: 10, end: 0, points: 0, pools: [] };
let chosen = 0; // the pool whose hour is shown, 0: all
let pointed = null; // the point under the pointer or the arrow keys

const ofChosen = () => state.pools.filter((pool) => chosen === 0 || pool.id === chosen);
const seriesOf = (id) => history.pools.find((pool) => pool.id === id)?.series;
const lastKnown = (list) => (list || []).findLast(known);
const timeOfPoint = (number) => history.end - (history.points - 1 - number) * history.step;

// Charts: title, lines ([class, series, name]), text of a figure, the figure of this moment.
const CHARTS = [
	["Clients waiting", [["line", "waiting"]], count, () => sum(ofChosen(), (pool) => pool.clients.waiting)],
	["Longest wait", [["line", "longest_wait_ms"], ["second", "wait_p99_ms", "p99 of waits"]], duration,
		() => most(ofChosen(), (pool) => pool.longest_wait) * 1000],
	["Query p99", [["line", "query_p99_ms"]], duration, () => (chosen === 0
		? lastKnown(seriesOf(0)?.query_p99_ms) : timeOf(ofChosen()[0] || {}, "query_ms", "p99"))],
	["Active servers", [["line", "active"]], count, () => sum(ofChosen(), (pool) => pool.servers.active)],
	["Transactions/s", [["line", "transactions"]], rate, () => (chosen === 0
		? state.totals.transactions_per_second : ofChosen()[0]?.transactions_per_second)],
	["Errors/s", [["line", "errors"]], rate, () => lastKnown(seriesOf(chosen)?.errors)],
];
const charts = [];

// The least of 1, 2, 5, 10, ... that is not below the value.
function roundUp(value) {
	if (!(value > 0)) return 1;
	const power = 10 ** Math.floor(Math.log10(value));
	return power * [1, 2, 5, 10].find((step) => step * power >= value * 0.999);
}

function makeCharts() {
	for (const [title, lines, text, now] of CHARTS) {
		const paths = lines.map(([name]) => draw("path", { class: name }));
		const area = draw("path", { class: "area" });
		const cross = draw("path", { class: "cross" });
		const picture = draw("svg", { role: "img", tabindex: "0", viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
			preserveAspectRatio: "none" }, draw("path", { class: "grid", d: `M0 ${HEIGHT / 2}H${WIDTH}` }),
			area, ...paths, cross);
		const value = make("strong");
		const top = make("span", { class: "top" });
		const key = lines.length > 1 ? [make("span", { class: "second" }, lines[1][2])] : [];
		const from = make("span");
		const figure = make("figure", null,
			make("figcaption", null, title, value),
			make("div", { class: "plot" }, picture, top),
			make("p", { class: "axis" }, from, ...key, make("span", null, "now")));
		$("charts").append(figure);
		charts.push({ title, lines, text, now, paths, area, cross, picture, value, top, from });
		picture.addEventListener("pointermove", (event) => {
			const box = picture.getBoundingClientRect();
			point(Math.round((event.clientX - box.left) / box.width * (history.points - 1)));
		});
		picture.addEventListener("pointerleave", () => point(null));
		picture.addEventListener("blur", () => point(null));
		picture.addEventListener("keydown", (event) => {
			const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 }[event.key];
			if (!step) return;
			event.preventDefault();
			point((pointed ?? history.points) + step);
		});
	}
}

// The lines of a path for a series, with gaps where it is not known.
function pathOf(list, highest, closed) {
	const x = (number) => (number * WIDTH / Math.max(1, history.points - 1)).toFixed(1);
	const y = (value) => (HEIGHT - Math.min(value / highest, 1) * (HEIGHT - 2)).toFixed(1);
	let path = "";
	let from = null;
	for (let number = 0; number <= list.length; number++) {
		const value = number < list.length ? list[number] : null;
		if (known(value)) {
			path += `${from === null ? "M" : "L"}${x(number)} ${y(value)}`;
			from = from ?? number;
		} else if (from !== null) {
			path += closed ? `V${HEIGHT}H${x(from)}Z` : from === number - 1 ? "h1" : "";
			from = null;
		}
	}
	return path;
}

function showHistory() {
	const series = seriesOf(chosen) || {};
	for (const chart of charts) {
		const lists = chart.lines.map(([, name]) => series[name] || []);
		const peak = Math.max(0, ...lists.flat().filter(known));
		const highest = roundUp(peak);
		lists.forEach((list, number) => setAttribute(chart.paths[number], "d", pathOf(list, highest)));
		setAttribute(chart.area, "d", pathOf(lists[0], highest, true));
		setText(chart.top, chart.text(highest));
		setText(chart.from, at(minute, history.end - history.points * history.step));
		const when = lists[0].indexOf(Math.max(...lists[0].filter(known)));
		chart.peak = known(lists[0][when]) ? `most ${chart.text(lists[0][when])} at ${at(clock, timeOfPoint(when))}` : "no data yet";
	}
	const ids = history.pools.map((pool) => pool.id).filter((id) => id !== 0);
	const options = [...$("hour-pool").options];
	if (ids.join() !== options.slice(1).map((option) => option.value).join())
		arrange($("hour-pool"), [options[0], ...ids.map((id) =>
			options.find((option) => option.value === String(id)) || make("option", { value: id }))]);
	for (const option of $("hour-pool").options)
		if (option.value !== "0") setText(option, state.pools.some((pool) => pool.id === Number(option.value))
			? nameOf(state.pools, Number(option.value)) : `pool ${option.value}`);
	if (chosen !== 0 && !seriesOf(chosen)) $("hour-pool").value = "0", hourChosen();
	point(pointed);
}

function showNow() {
	for (const chart of charts) {
		const text = chart.text(chart.now() ?? null);
		setAttribute(chart.picture, "aria-label",
			`${chart.title}, last hour, ${$("hour-pool").selectedOptions[0]?.textContent}: now ${text}, ${chart.peak || "no data yet"}`);
		if (pointed === null) setText(chart.value, text);
	}
}

// Show the figures of one point in all charts; null: those of this moment.
function point(number) {
	pointed = number === null || history.points === 0 ? null : Math.max(0, Math.min(history.points - 1, number));
	setText($("hour-at"), pointed === null ? "" : `at ${at(clock, timeOfPoint(pointed))}`);
	const x = pointed === null ? null : pointed * WIDTH / Math.max(1, history.points - 1);
	for (const chart of charts) {
		setAttribute(chart.cross, "d", x === null ? "" : `M${x.toFixed(1)} 0V${HEIGHT}`);
		if (x !== null) setText(chart.value, chart.text((seriesOf(chosen) || {})[chart.lines[0][1]]?.[pointed]));
	}
	if (x === null && state) showNow();
}

function hourChosen() {
	chosen = Number($("hour-pool").value);
	showHistory();
	showNow();
}

// --- the verdict ------------------------------------------------------------------------------

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

// Whether clients hold servers between their queries: transactions take much longer than queries.
function isHeld(pool) {
	const transaction = timeOf(pool, "transaction_ms", "p50");
	return known(transaction) && transaction >= 10 && transaction >= 4 * (timeOf(pool, "query_ms", "p50") || 0);
}

// Why clients of this pool wait: [sentence, whether PostgreSQL is the cause].
function causeOf(pool, before) {
	const name = poolName(pool);
	if (pool.paused) return [`${name} is paused`, false];
	const host = pool.servers.active + pool.servers.idle === 0 ? state.hosts.find((item) => item.up === false)
		: state.hosts.find((item) => item.id === pool.host);
	if (host?.up === false) return [`PostgreSQL is not reached, ${line(host.name)} is down`, true];
	if (isFull(pool)) {
		if (isSlower(pool, before)) return [`${name} is full because PostgreSQL is slow`, true];
		if (pool.servers.pinned * 2 >= pool.size) return [`${name} is full because servers are pinned to clients`, false];
		if (isHeld(pool)) return [`${name} is full because transactions hold servers between queries`, false];
		return [`${name} is full, PostgreSQL is not the limit`, false];
	}
	if (pool.servers.login + pool.servers.tested > 0) return [`new servers of ${name} log in at PostgreSQL`, true];
	return [`${name} is not full, but a limit of its database, user or host is reached`, false];
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
	const [cause, guilty] = causeOf(pool, since);
	return {
		level: pool.longest_wait >= 1 || guilty ? "critical" : "warning",
		head: `Clients wait: ${cause}`, guilty,
		since, pool,
	};
}

function verdictWithoutWaits() {
	const down = state.hosts.filter((host) => host.up === false);
	const failing = state.pools.filter((pool) => pool.errors_per_second > 0);
	const busiest = [...state.pools].sort((a, b) => b.servers.active - a.servers.active)[0] || null;
	const slower = state.pools.find((pool) => isSlower(pool, state.now - 60));
	const idle = [...state.pools].sort((a, b) => (b.oldest_idle_transaction || 0) - (a.oldest_idle_transaction || 0))[0];
	const worst = ["critical", "warning"].find((level) => state.advice.some((advice) => advice.severity === level));
	if (down.length) return { level: "critical", pool: busiest, guilty: true, head: down.length === 1
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

function showVerdict() {
	const { level, head, since, pool, guilty, change } = verdict();
	const ranks = ["critical", "warning", "info"];
	const first = [...state.advice].sort((a, b) => ranks.indexOf(a.severity) - ranks.indexOf(b.severity) ||
		(pool && b.pool === pool.id) - (pool && a.pool === pool.id)).find((advice) => advice.setting);
	setAttribute($("verdict"), "data-level", level);
	setText($("headline"), head);
	const times = pool && serverTimes(pool);
	setText($("of-queue"), times ? `up to ${duration(times.wait)} in pgusher’s queue` : "No query yet.");
	setText($("of-server"), times ? `${duration(times.query)} at PostgreSQL (p99)` : "");
	setBar(verdictBar, (times?.wait || 0) + (times?.query || 0), [["queue", times?.wait || 0], ["active", times?.query || 0]]);
	setText($("holder"), pool ? holderOf(pool) : "None.");
	setText($("since"), since ? `${at(clock, since)}, ${seconds(Math.max(0, state.now - since))} ago` : level === "ok"
		? "All is well." : "Seen now; the charts show the last hour.");
	setText($("change"), change ? change : first ? `${first.setting}: see the advice${first.pool === null ? "" : ` on ${nameOf(state.pools, first.pool)}`}`
		: guilty ? "PostgreSQL or the way to it, not a setting." : state.advice.length ? "See the advice."
			: level === "ok" ? "Nothing." : "There is no advice yet.");
	const waiting = sum(state.pools, (item) => item.clients.waiting);
	const title = waiting ? `(${count(waiting)} waiting) pgusher` : "pgusher";
	if (document.title !== title) document.title = title;
}

const verdictBar = newBar();

// --- polling ----------------------------------------------------------------------------------

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
	Object.assign(history, JSON.parse(text));
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
