// Builds DOM nodes. The only place that puts text of unknown origin into the page.
//
// Every string goes through `displayText` and into a text node or a plain attribute; nothing here or
// elsewhere parses markup.

import { baseName, displayText, shortenMiddle } from "../display-text";

export type Child = Node | string | null | undefined | false | Child[];
type Listener = { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };
export type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

const SVG = "http://www.w3.org/2000/svg";
/** Attributes that could run script or load something are never set from here. */
const ALLOWED = /^(?:class|id|title|role|tabindex|type|value|placeholder|for|name|scope|colspan|rowspan|href|dir|hidden|checked|disabled|open|selected|autocomplete|spellcheck|start|aria-[a-z]+|data-[a-z-]+)$/;

/** An HTML element; attributes that start with `on` take a listener. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes & Listener = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as unknown as EventListener);
    else if (!ALLOWED.test(name) || (name === "href" && !String(value).startsWith("#"))) throw new Error(`attribute ${name} is not allowed`);
    else element.setAttribute(name, value === true ? "" : displayText(String(value)));
  }
  append(element, children);
  return element;
}

/** An SVG element; attributes are numbers and words of this program, not data. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(typeof child === "string" ? displayText(child) : child);
  }
}

/** Text of a foreign direction in its own isolate, so that it cannot reorder what stands around it. */
export function isolated(text: string, className = ""): HTMLElement {
  return h("bdi", { class: className || null, dir: "ltr", title: text }, text);
}

/** Longer names lose their middle even where their folder is not shown at all. */
const NAME_LENGTH = 32;

/** A path in one line: its folder gives way where the room (`--path` of the style sheet) is short, its name stays. */
export function pathText(path: string): HTMLElement {
  const name = shortenMiddle(displayText(baseName(path)), NAME_LENGTH);
  const folder = h("span", { class: "folder" }, path.slice(0, path.length - baseName(path).length));
  folder.style.maxWidth = `max(2.5ch, calc(var(--path) - ${name.length}ch))`;
  return h("bdi", { class: "path", dir: "ltr", title: path }, folder, name);
}

export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}
