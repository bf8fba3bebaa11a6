// Questions to the dashboard. An error is an error: it is thrown, and never an empty list.

let csrf = "";

export class ApiError extends Error {
  constructor(status, kind, text) {
    super(text);
    this.status = status;
    this.kind = kind;
  }
}

export function setCsrf(token) {
  csrf = token || "";
}

async function ask(method, path, { params, body, signal } = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params || {})) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  const options = { method, signal, headers: {}, credentials: "same-origin" };
  if (method !== "GET") {
    options.headers = { "content-type": "application/json", "x-csrf-token": csrf || "none" };
    options.body = JSON.stringify(body || {});
  }
  let response;
  try {
    response = await fetch(text ? `${path}?${text}` : path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "");
  }
  return read(response);
}

async function read(response) {
  let told = null;
  try {
    told = await response.json();
  } catch {
    throw new ApiError(response.status, "answer", "");
  }
  if (response.ok) return told;
  const { kind = "answer", text = "" } = told.error || {};
  if (response.status === 401 && kind === "login") {
    window.dispatchEvent(new CustomEvent("login-needed"));
  }
  throw new ApiError(response.status, kind, text);
}

export const get = (path, params, signal) => ask("GET", path, { params, signal });
export const post = (path, body) => ask("POST", path, { body });
export const del = (path, body) => ask("DELETE", path, { body });
