// SPDX-License-Identifier: ISC
// /page.js is these files, joined in the order that src/Makefile.inc names; the last one, page.js, begins. They show what
// /api/state and /api/history say. Names come from outside: they reach the document as text nodes only.
// Nodes are made once and then changed in place.
"use strict";

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
