// Nodes of the page: made once, then changed in place.
//
// Names in a log may be anything. They reach the page as text, never as markup.

import { plain } from "./text.js";

export const byId = (id) => document.getElementById(id);

/** Writes a text only if it differs, so that a selection stays. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}
export function attribute(node, name, text) {
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  return node;
}
export const title = (node, text) => attribute(node, "title", text);
export const hide = (node, hidden) => {
  if (node.hidden !== hidden) node.hidden = hidden;
};
export const shade = (node, name) => {
  if (node.className !== name) node.className = name;
};

export function make(tag, name = "", ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...children.filter((child) => child !== null));
  return node;
}
/** A name from the log, isolated from the direction of the text around it. */
export const named = (text, name = "") => {
  const node = make("bdi", name, plain(text));
  node.title = plain(text);
  return node;
};
export const link = (text, asked) => {
  const node = make("a", "", text);
  node.href = `#why=${asked}`;
  node.title = "The whole explanation";
  return node;
};
export const button = (name, text, onclick) => {
  const node = make("button", name, text);
  node.type = "button";
  node.addEventListener("click", onclick);
  return node;
};
export const shownIn = new WeakMap();
/** Shows items as children of a node. Nodes of items that stay are kept, with focus and selection. `create` returns the
 * item's node and the function that shows the item in it. */
export function list(parent, items, keyOf, create) {
  const before = shownIn.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!after.has(key)) after.set(key, [before.get(key) ?? create(item), item]);
  }
  for (const [key, view] of before) if (!after.has(key)) view.node.remove();
  let next = parent.firstElementChild;
  const kept = new Map();
  for (const [key, [view, item]] of after) {
    if (view.node === next) next = next.nextElementSibling;
    else parent.insertBefore(view.node, next);
    view.show?.(item);
    kept.set(key, view);
  }
  shownIn.set(parent, kept);
}

export const stored = (key) => {
  try {
    return localStorage.getItem(`warptape.${key}`);
  } catch {
    return null;
  }
};
export const store = (key, text) => {
  try {
    localStorage.setItem(`warptape.${key}`, text);
  } catch {
    /* Storage may be refused. */
  }
};
