// SPDX-License-Identifier: ISC
// Figures and names as text for people.

const UNKNOWN = "–";

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
