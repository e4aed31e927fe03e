// SPDX-License-Identifier: ISC
// Tables, bars and lists of facts, updated in place.

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
