// The losses over the epochs. Point at them to read, click or drag to go back in time.

import { theme } from "./colours.js";
import { Board, line, ticks } from "./draw.js";
import { lossText } from "./figures.js";
import { thinned } from "./thinned.js";
import { grouped, shortNumber, write } from "./words.js";

const MARGIN = { left: 42, right: 8, top: 6, bottom: 18 }; // in letters of the usual size
const MOST_DECADES = 6; // with a name on a logarithmic axis
const DRAG = 5; // pixels that make a drag of a press

export class Losses {
  #pointer = null; // the mouse, in pixels from the left
  #wanted = null; // the epoch that somebody chose: the server goes to the nearest one that it has kept

  constructor(stage, repaint) {
    this.stage = stage;
    this.canvas = document.querySelector("[data-canvas=loss]");
    this.note = document.querySelector("[data-note=loss]");
    this.now = document.querySelector("[data-do=now]");
    this.board = new Board(this.canvas, repaint);
    this.repaint = repaint;
    this.#listen();
  }

  paint() {
    const { board } = this;
    const { picture } = this.stage;
    const { epochs, train, test } = picture.arrays;
    this.now.hidden = picture.at === null && picture.gone_after === null;
    write(this.now, picture.at === null ? "Undo" : "Back to now");
    this.now.title = picture.at === null ? "Bring back what came after it" : "";
    this.note.classList.toggle("strong", picture.at !== null);
    if (!picture.playing) this.canvas.ariaValueNow = picture.at ?? picture.epochs;
    if (!board.width) return;
    const pen = board.clear();
    const scale = this.scale = this.#scale(epochs, train, test);
    this.#paintAxes(pen, scale);
    this.#paintCurve(pen, scale, epochs, test, [5, 4]);
    this.#paintCurve(pen, scale, epochs, train, []);
    if (picture.at !== null) this.#paintMarker(pen, scale, picture.at, epochs, train, theme.ink, 2);
    this.#write(pen, scale, epochs, train, test);
  }

  #scale(epochs, train, test) {
    const { width, height } = this.board;
    const isLog = this.stage.setting("log_loss") === "on";
    let [lowest, highest] = [Infinity, 1e-3];
    for (const values of [train, test]) {
      for (let i = 0; i < values.length; i++) {
        if (values[i] > highest && values[i] < Infinity) highest = values[i];
        if (values[i] < lowest) lowest = values[i];
      }
    }
    lowest = Math.max(1e-6, Math.min(lowest, highest / 2));
    const squash = isLog ? (value) => Math.log10(Math.max(value, 1e-6)) : (value) => value;
    const bottom = isLog ? squash(lowest) - 0.05 : 0;
    const top = isLog ? squash(highest) + 0.05 : highest * 1.06;
    const last = Math.max(10, epochs[epochs.length - 1] ?? 0);
    const [left, right, ceiling, floor] = [
      theme.scale * MARGIN.left, width - MARGIN.right, MARGIN.top, height - theme.scale * MARGIN.bottom];
    return {
      left, right, ceiling, floor, last, bottom, top, isLog,
      x: (epoch) => left + (epoch / last) * (right - left),
      y: (value) => floor - ((squash(value) - bottom) / (top - bottom)) * (floor - ceiling),
      epochAt: (x) => Math.max(0, Math.min(last, ((x - left) / (right - left)) * last)),
    };
  }

  #paintAxes(pen, { left, right, floor, last, bottom, top, isLog, x, y }) {
    pen.font = theme.font(11);
    pen.fillStyle = theme.muted;
    pen.strokeStyle = theme.grid;
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of isLog ? decades(bottom, top) : ticks(0, top, Math.max(2, floor / 40))) {
      const level = Math.round(y(value)) + 0.5;
      line(pen, left, level, right, level);
      pen.fillText(shortNumber(value), left - 6, level);
    }
    pen.textBaseline = "alphabetic";
    for (const epoch of ticks(0, last, Math.max(3, (right - left) / 90))) {
      pen.textAlign = epoch === 0 ? "left" : x(epoch) > right - 14 ? "right" : "center";
      pen.fillText(shortNumber(epoch), x(epoch), this.board.height - 4);
    }
  }

  #paintCurve(pen, { x, y }, epochs, values, dashes) {
    pen.beginPath();
    for (let i = 0; i < values.length; i++) pen.lineTo(x(epochs[i]), y(values[i]));
    pen.strokeStyle = dashes.length ? theme.muted : theme.ink;
    pen.lineWidth = 1.75;
    pen.lineJoin = "round";
    pen.setLineDash(dashes);
    pen.stroke();
    pen.setLineDash([]);
  }

  #paintMarker(pen, { x, y, ceiling, floor }, epoch, epochs, train, colour, width) {
    const i = nearest(epochs, epoch);
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = width;
    line(pen, x(epoch), ceiling, x(epoch), floor);
    pen.beginPath();
    pen.arc(x(epoch), y(train[i]), 4, 0, 2 * Math.PI);
    pen.fill();
  }

  #write(pen, scale, epochs, train, test) {
    const { at, gone_after: gone } = this.stage.picture;
    let text = at !== null ? `Looking at epoch ${grouped(at)}`
      : gone !== null ? `You went on from epoch ${grouped(gone)}` : "Loss";
    if (at !== null && this.#wanted !== null && this.#wanted !== at) text += ` (${grouped(this.#wanted)} is not kept)`;
    if (this.#pointer !== null && epochs.length) {
      const i = nearest(epochs, scale.epochAt(this.#pointer));
      this.#paintMarker(pen, scale, epochs[i], epochs, train, theme.muted, 1);
      text = reading(epochs[i], train[i], test[i]);
    }
    write(this.note, text);
  }

  // ---- travelling in time ----------------------------------------------------------------------------------------

  #listen() {
    const { canvas } = this;
    const travel = thinned((epoch) => this.travel(epoch), 50);
    let start = null; // where a drag began; a finger that scrolls the page must not travel
    canvas.onpointerdown = (event) => {
      if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
      start = event.offsetX;
    };
    canvas.onpointermove = (event) => {
      this.#pointer = event.offsetX;
      const isDrag = start !== null && Math.abs(event.offsetX - start) > DRAG;
      if (isDrag && this.scale) travel(this.scale.epochAt(event.offsetX));
      this.repaint();
    };
    // At the end of a drag, too: what somebody does next must not be overtaken.
    canvas.onclick = ({ offsetX }) => this.scale && travel.now(this.scale.epochAt(offsetX));
    canvas.onpointerup = canvas.onpointercancel = () => { start = null; };
    canvas.onpointerleave = () => {
      this.#pointer = null;
      this.repaint();
    };
    canvas.onkeydown = (event) => this.#key(event);
    this.now.onclick = () => {
      if (this.stage.picture.at === null) this.stage.connection.send({ do: "undo" });
      else this.travel(null);
    };
  }

  travel(epoch) {
    this.#wanted = epoch === null ? null : Math.round(epoch);
    this.stage.connection.send({ do: "travel", epoch: this.#wanted });
  }

  #key(event) {
    const { picture } = this.stage;
    const { epochs, train, test } = picture.arrays;
    const last = epochs.length - 1;
    const here = picture.at === null ? last : nearest(epochs, this.#wanted ?? picture.at);
    const most = this.stage.scene.most_moments; // of which the server keeps at least half once there were more
    const nextMoment = epochs.length > most ? Math.ceil(2 * epochs.length / most) : 1;
    const stride = nextMoment * (event.shiftKey ? 10 : 1);
    const i = { ArrowLeft: here - stride, ArrowDown: here - stride, ArrowRight: here + stride, ArrowUp: here + stride,
      Home: 0, End: last }[event.key];
    if (i === undefined || !epochs.length) return;
    event.preventDefault();
    const there = Math.max(0, Math.min(last, i));
    this.travel(there === last ? null : epochs[there]);
    this.stage.say(reading(epochs[there], train[there], test[there]));
  }
}

// A loss that is no number was measured without points.
function reading(epoch, ...losses) {
  const [train, test] = losses.map((loss) => lossText(!Number.isNaN(loss), loss));
  return `Epoch ${grouped(epoch)}: training ${train}, test ${test}`;
}

function nearest(sorted, wanted) {
  let [low, high] = [0, sorted.length - 1];
  while (high - low > 1) {
    const middle = low + high >> 1;
    if (sorted[middle] < wanted) low = middle;
    else high = middle;
  }
  return Math.abs(sorted[low] - wanted) <= Math.abs(sorted[high] - wanted) ? low : high;
}

function decades(low, high) {
  const all = [];
  const stride = Math.ceil((high - low) / MOST_DECADES);
  for (let power = Math.floor(low); power <= high; power += stride) {
    for (const factor of high - low < 0.8 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : high - low < 1.6 ? [1, 2, 5] : [1]) {
      const value = factor * 10 ** power;
      if (Math.log10(value) >= low && Math.log10(value) <= high) all.push(value);
    }
  }
  return all;
}
