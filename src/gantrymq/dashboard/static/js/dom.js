// Elements made in one place: text is always text, so nothing that a broker says becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else if (name === "href") setHref(element, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

// Only addresses of this page: a value from a message never becomes a link that runs something.
function setHref(element, value) {
  if (value.startsWith("#") || value.startsWith("/")) element.setAttribute("href", value);
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

export function icon(size) {
  const src = new URL("../icon.svg", import.meta.url).pathname;
  return h("img", { src, alt: "", width: size, height: size });
}

let count = 0;
export function freshId(what) {
  count += 1;
  return `${what}-${count}`;
}

// Says something to those who do not see it happen.
export function announce(text) {
  const place = document.getElementById("announcer");
  place.textContent = "";
  window.setTimeout(() => { place.textContent = text; }, 50);
}
