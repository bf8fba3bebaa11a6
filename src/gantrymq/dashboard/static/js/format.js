// Numbers, sizes and times as people read them.

import { locale, t } from "./i18n.js";

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: digits }).format(value);
}

// A rate or a duration: three figures are enough.
export function short(value) {
  if (value === null || value === undefined) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  if (Math.abs(value) >= 10000) {
    return new Intl.NumberFormat(locale(), { notation: "compact", maximumFractionDigits: 1 })
      .format(value);
  }
  return number(value, digits);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = value;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${number(left, at ? 1 : 0)} ${units[at]}`;
}

export function percent(ratio) {
  return ratio === null || ratio === undefined ? "–" : `${number(ratio * 100)} %`;
}

const two = (value) => String(value).padStart(2, "0");

export function time(ms) {
  if (!ms || ms < 0) return "–";
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
    `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function clock(ms) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const seconds = ms / 1000;
  if (seconds < 60) return t("unit.seconds", { count: number(seconds, seconds < 10 ? 1 : 0) });
  if (seconds < 3600) return t("unit.minutes", { count: number(seconds / 60, 1) });
  if (seconds < 172800) return t("unit.hours", { count: number(seconds / 3600, 1) });
  return t("unit.days", { count: number(seconds / 86400, 1) });
}

// What a field for a time takes, in the zone of this machine.
export function localInput(ms) {
  return time(ms).replace(" ", "T");
}
