// The shortest way from one point to another that goes around boxes.

import { mix } from "./picture.js";

const AWAY = 6; // of a corner that a way goes around from its box
const CLEAR = 5; // of a way from every box; the gaps between boxes are wider than both together
const ROUND = 8; // how far from a corner a way begins to turn

// Its points: the first, the last, and the corners that it turns at; undefined if there is no way. Only boxes
// that turn out to be in the way are looked at.
export function shortestWay(from, to, boxes) {
  const met = [];
  for (;;) {
    const way = wayAround(from, to, met);
    if (!way) return undefined;
    const meets = (box) => way.some((point, i) => i && crosses(way[i - 1], point, box, CLEAR));
    const more = boxes.filter((box) => !met.includes(box) && meets(box));
    if (!more.length) return way;
    met.push(...more);
  }
}

// Dijkstra's way along straight lines from corner to corner; undefined if there is none.
function wayAround(from, to, boxes) {
  const corners = boxes.flatMap(({ left, right, top, bottom }) =>
    [left - AWAY, right + AWAY].flatMap((x) => [top - AWAY, bottom + AWAY].map((y) => [x, y])),
  );
  const waiting = new Set([from, to, ...corners].map((at) => ({ at, length: Infinity })));
  const [start, end] = waiting;
  start.length = 0;
  while (waiting.has(end)) {
    const nearest = [...waiting].reduce((a, b) => (b.length < a.length ? b : a));
    if (nearest.length === Infinity) return undefined;
    waiting.delete(nearest);
    for (const next of waiting) {
      const length = nearest.length + distance(nearest.at, next.at);
      if (length >= next.length || boxes.some((box) => crosses(nearest.at, next.at, box, CLEAR))) continue;
      Object.assign(next, { length, before: nearest });
    }
  }
  const way = [];
  for (let point = end; point; point = point.before) way.unshift(point.at);
  return way;
}

export const distance = ([x, y], [u, v]) => Math.hypot(u - x, v - y);

// Whether a straight line goes through a box with a margin around it.
export function crosses([x, y], [u, v], { left, right, top, bottom }, margin) {
  let [enter, leave] = [0, 1];
  for (const [at, by, low, high] of [[x, u - x, left, right], [y, v - y, top, bottom]]) {
    const ends = [low - margin - at, high + margin - at];
    if (by === 0) {
      if (ends[0] >= 0 || ends[1] <= 0) return false;
      continue;
    }
    enter = Math.max(enter, Math.min(ends[0] / by, ends[1] / by));
    leave = Math.min(leave, Math.max(ends[0] / by, ends[1] / by));
  }
  return enter < leave;
}

// Where a straight line from inside a box, or the ellipse in it, comes out.
export function border([x, y], [u, v], { left, right, top, bottom }, isRound) {
  const [dx, dy] = [u - x, v - y];
  let share;
  if (isRound) {
    const [rx, ry] = [(right - left) / 2, (bottom - top) / 2];
    const [px, py, qx, qy] = [(x - left) / rx - 1, (y - top) / ry - 1, dx / rx, dy / ry];
    const [a, b, c] = [qx * qx + qy * qy, px * qx + py * qy, px * px + py * py - 1];
    share = (Math.sqrt(b * b - a * c) - b) / a;
  } else {
    const out = (at, by, low, high) => (by > 0 ? (high - at) / by : by < 0 ? (low - at) / by : Infinity);
    share = Math.min(out(x, dx, left, right), out(y, dy, top, bottom));
  }
  share = Math.min(share, 1);
  return [x + share * dx, y + share * dy];
}

// A point on a way, so far from its end, and the direction there.
export function pointFromEnd(way, far) {
  for (let i = way.length - 1; i > 0; i -= 1) {
    const [to, from] = [way[i], way[i - 1]];
    const length = distance(from, to);
    if (far <= length || i === 1) {
      const share = length ? Math.min(far / length, 1) : 0;
      const at = [mix(to[0], from[0], share), mix(to[1], from[1], share)];
      return { at, direction: Math.atan2(to[1] - from[1], to[0] - from[0]) };
    }
    far -= length;
  }
  return { at: way[0], direction: 0 };
}

// A way as the data of a path, with round corners.
export function written(way) {
  const near = (corner, other) => {
    const share = Math.min(0.5, ROUND / (distance(corner, other) || 1));
    return [mix(corner[0], other[0], share), mix(corner[1], other[1], share)];
  };
  const text = (point) => point.map((x) => x.toFixed(2)).join();
  const turns = way.slice(1, -1).map((corner, i) =>
    `L${text(near(corner, way[i]))}Q${text(corner)} ${text(near(corner, way[i + 2]))}`,
  );
  return `M${text(way[0])}${turns.join("")}L${text(way.at(-1))}`;
}
