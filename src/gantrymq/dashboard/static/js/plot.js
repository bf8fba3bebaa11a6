// Lines over time, drawn as SVG. Gaps stay gaps: what a broker did not say is not made up.

import { h, replace, s } from "./dom.js";
import { clock, short } from "./format.js";
import { t } from "./i18n.js";

const WIDTH = 640;
const HEIGHT = 220;
const LEFT = 52;
const BOTTOM = 26;
const TOP = 10;
const RIGHT = 12;

// The next "round" number: 1, 2 or 5 times a power of ten.
export function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value);
}

export function plot({ title, unit, series }) {
  const readout = h("p", { class: "readout", "aria-hidden": "true" });
  const legend = h("ul", { class: "legend" });
  const drawing = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot" });
  const element = h("figure", { class: "card plot-card" },
    h("figcaption", {}, h("h2", {}, title), h("span", { class: "unit" }, unit)),
    drawing, readout, legend);
  let points = [];
  let scale = null;

  drawing.addEventListener("pointermove", (event) => {
    if (!scale || !points.length) return;
    const box = drawing.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const nearest = points.reduce((best, each) => (
      Math.abs(scale.x(each.timeMs) - x) < Math.abs(scale.x(best.timeMs) - x) ? each : best));
    pointAt(nearest);
  });
  drawing.addEventListener("pointerleave", () => pointAt(null));

  function pointAt(point) {
    const old = drawing.querySelector(".cursor");
    if (old) old.remove();
    if (!point) {
      readout.textContent = "";
      return;
    }
    const x = scale.x(point.timeMs);
    drawing.append(s("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
    readout.textContent = `${clock(point.timeMs)}  ` + series
      .map((each) => `${each.name} ${short(point[each.key])}`).join("  ");
  }

  function update(next, spanMs, nowMs) {
    points = next;
    const last = points.at(-1);
    const words = series.map((each) => `${each.name} ${short(last && last[each.key])} ${unit}`);
    drawing.setAttribute("aria-label", `${title}: ${words.join(", ")}`);
    replace(legend, series.map((each) => h("li", {},
      h("span", { class: `swatch ${each.color}`, "aria-hidden": "true" }), each.name, " ",
      h("strong", {}, short(last && last[each.key])), ` ${unit}`)));
    const most = Math.max(0, ...points.flatMap((each) => series.map((one) => each[one.key] || 0)));
    scale = makeScale(roundUp(most), spanMs, nowMs);
    replace(drawing, axes(scale, spanMs, nowMs), series.map((each) => (
      line(points, each, scale))));
    if (!points.length) {
      drawing.append(s("text", { x: WIDTH / 2, y: HEIGHT / 2, class: "no-data" },
        t("plot.waiting")));
    }
  }

  return { element, update };
}

function makeScale(most, spanMs, nowMs) {
  return {
    most,
    x: (timeMs) => LEFT + (1 - (nowMs - timeMs) / spanMs) * (WIDTH - LEFT - RIGHT),
    y: (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP),
  };
}

function axes(scale, spanMs, nowMs) {
  const marks = [];
  for (let at = 0; at <= 4; at += 1) {
    const value = (scale.most * at) / 4;
    const y = scale.y(value);
    marks.push(s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }));
    marks.push(s("text", { class: "mark end", x: LEFT - 8, y: y + 4 }, short(value)));
  }
  for (let at = 0; at <= 3; at += 1) {
    const timeMs = nowMs - spanMs + (spanMs * at) / 3;
    const kind = at === 0 ? "start" : at === 3 ? "end" : "middle";
    marks.push(s("text", { class: `mark ${kind}`, x: scale.x(timeMs), y: HEIGHT - 6 },
      clock(timeMs)));
  }
  return marks;
}

function line(points, each, scale) {
  let path = "";
  let isDown = false;
  for (const point of points) {
    const value = point[each.key];
    if (value === null || value === undefined) {
      isDown = false;
      continue;
    }
    path += `${isDown ? "L" : "M"}${scale.x(point.timeMs).toFixed(1)} ${scale.y(value).toFixed(1)}`;
    isDown = true;
  }
  return s("path", { class: `line ${each.color}`, d: path || "M0 0" });
}
