// SPDX-License-Identifier: ISC
// The charts of the last hour.

const WIDTH = 360;
const HEIGHT = 60;
const YOUNG = 60; // points: the least that charts show of a process that has not run for an hour
const hour = { step: 10, end: 0, points: 0, pools: [] };
let from = 0; // the first point that charts show
let chosen = 0; // the pool whose hour is shown, 0: all
let pointed = null; // the point under the pointer or the arrow keys

const ofChosen = () => state.pools.filter((pool) => chosen === 0 || pool.id === chosen);
const seriesOf = (id) => hour.pools.find((pool) => pool.id === id)?.series;
const lastKnown = (list) => (list || []).findLast(known);
const timeOfPoint = (number) => hour.end - (hour.points - 1 - number) * hour.step;

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
		const begin = make("span");
		const figure = make("figure", null,
			make("figcaption", null, title, value),
			make("div", { class: "plot" }, picture, top),
			make("p", { class: "axis" }, begin, ...key, make("span", null, "now")));
		$("charts").append(figure);
		charts.push({ title, lines, text, now, paths, area, cross, picture, value, top, begin });
		picture.addEventListener("pointermove", (event) => {
			const box = picture.getBoundingClientRect();
			point(from + Math.round((event.clientX - box.left) / box.width * (hour.points - 1 - from)));
		});
		picture.addEventListener("pointerleave", () => point(null));
		picture.addEventListener("blur", () => point(null));
		picture.addEventListener("keydown", (event) => {
			const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 }[event.key];
			if (!step) return;
			event.preventDefault();
			point((pointed ?? hour.points) + step);
		});
	}
}

// Where a point is in a chart.
const x = (number) => ((number - from) * WIDTH / Math.max(1, hour.points - 1 - from)).toFixed(1);

// The lines of a path for a series, with gaps where it is not known.
function pathOf(list, highest, closed) {
	const y = (value) => (HEIGHT - Math.min(value / highest, 1) * (HEIGHT - 2)).toFixed(1);
	let path = "";
	let first = null;
	for (let number = from; number <= list.length; number++) {
		const value = number < list.length ? list[number] : null;
		if (known(value)) {
			path += `${first === null ? "M" : "L"}${x(number)} ${y(value)}`;
			first = first ?? number;
		} else if (first !== null) {
			path += closed ? `V${HEIGHT}H${x(first)}Z` : first === number - 1 ? "h1" : "";
			first = null;
		}
	}
	return path;
}

function showHistory() {
	const series = seriesOf(chosen) || {};
	const begun = (seriesOf(0)?.active || []).findIndex(known);
	from = begun < 0 ? 0 : Math.max(0, Math.min(begun, hour.points - YOUNG));
	for (const chart of charts) {
		const lists = chart.lines.map(([, name]) => series[name] || []);
		const peak = Math.max(0, ...lists.flat().filter(known));
		const highest = roundUp(peak);
		lists.forEach((list, number) => setAttribute(chart.paths[number], "d", pathOf(list, highest)));
		setAttribute(chart.area, "d", pathOf(lists[0], highest, true));
		setText(chart.top, chart.text(highest));
		setText(chart.begin, at(minute, timeOfPoint(from)));
		const when = lists[0].indexOf(Math.max(...lists[0].filter(known)));
		chart.peak = known(lists[0][when]) ? `most ${chart.text(lists[0][when])} at ${at(clock, timeOfPoint(when))}` : "no data yet";
	}
	const ids = hour.pools.map((pool) => pool.id).filter((id) => id !== 0);
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
	pointed = number === null || hour.points === 0 ? null : Math.max(from, Math.min(hour.points - 1, number));
	setText($("hour-at"), pointed === null ? "" : `at ${at(clock, timeOfPoint(pointed))}`);
	for (const chart of charts) {
		setAttribute(chart.cross, "d", pointed === null ? "" : `M${x(pointed)} 0V${HEIGHT}`);
		if (pointed !== null) setText(chart.value, chart.text((seriesOf(chosen) || {})[chart.lines[0][1]]?.[pointed]));
	}
	if (pointed === null && state) showNow();
}

function hourChosen() {
	chosen = Number($("hour-pool").value);
	showHistory();
	showNow();
}
