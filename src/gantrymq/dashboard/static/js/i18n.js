// Texts in two languages, out of one table (texts.json); every key has both.

let table = {};
let chosen = "en";

export const LANGUAGES = [["en", "English"], ["zh", "中文"]];

export async function loadTexts() {
  const response = await fetch(new URL("../texts.json", import.meta.url));
  if (!response.ok) throw new Error(`texts: ${response.status}`);
  table = await response.json();
  const kept = window.localStorage.getItem("language");
  const wanted = kept || (navigator.language || "en").slice(0, 2);
  setLanguage(LANGUAGES.some(([code]) => code === wanted) ? wanted : "en", false);
}

export function language() {
  return chosen;
}

export function locale() {
  return chosen === "zh" ? "zh-CN" : "en-GB";
}

export function setLanguage(code, keep = true) {
  chosen = code;
  document.documentElement.lang = code === "zh" ? "zh-CN" : "en";
  if (keep) window.localStorage.setItem("language", code);
}

// Returns the text of a key; {name} in it stands for a value.
export function t(key, values = {}) {
  const entry = table[key];
  if (!entry) return key;
  return entry[chosen].replace(/\{(\w+)\}/g, (whole, name) => (
    name in values ? String(values[name]) : whole
  ));
}
