// Which page is shown: the part of the address behind #, so that links and "back" work.

const pages = new Map();
let current = null;

export function page(path, show) {
  pages.set(path, show);
}

export function link(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `#${path}?${text}` : `#${path}`;
}

export function go(path, params) {
  window.location.hash = link(path, params);
}

export function where() {
  const text = window.location.hash.replace(/^#/, "") || "/";
  const [path, query = ""] = text.split("?");
  return { path, params: Object.fromEntries(new URLSearchParams(query)) };
}

// Changes what stands in the address without showing the page anew.
export function note(params) {
  const { path, params: before } = where();
  window.history.replaceState(null, "", link(path, { ...before, ...params }));
}

export function show(view) {
  if (current) current.abort();
  current = new AbortController();
  const { path, params } = where();
  const make = pages.get(path) || pages.get("/");
  make(view, params, current.signal);
}

export function stop() {
  if (current) current.abort();
  current = null;
}
