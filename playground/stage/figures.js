// The figures beside the pictures: epoch, losses, accuracy, and how fast it goes.

import { grouped, write } from "./words.js";

export class Figures {
  constructor(stage) {
    this.stage = stage;
    this.speed = new Speedometer();
    const figures = [...document.querySelectorAll("[data-figure]")];
    this.places = Object.fromEntries(figures.map((place) => [place.dataset.figure, place]));
    this.mode = document.querySelector("[data-status=mode]");
    this.rate = document.querySelector("[data-status=rate]");
  }

  // Each picture counts, also those whose figures nobody could read.
  count(picture) {
    this.speed.count(picture);
  }

  paint() {
    const { picture, scene } = this.stage;
    const { figures, mode } = picture;
    const isWithin = !this.stage.playing && picture.share > 0; // a slow epoch, paused before its end
    const share = isWithin ? Math.max(0.1, Math.floor(10 * picture.share) / 10) : 0;
    write(this.places.epochs, grouped((picture.at ?? picture.epochs) + share));
    write(this.places.train_loss, lossText(scene.train, figures.train_loss));
    write(this.places.test_loss, lossText(scene.test, figures.test_loss));
    const hasAccuracy = scene.test && !scene.is_regression && Number.isFinite(figures.test_loss);
    write(this.places.accuracy, hasAccuracy ? `${(100 * (1 - figures.test_error)).toFixed(1)} %` : "–");
    write(this.places.speed, this.stage.playing ? this.speed.read() : "paused");
    write(this.rate, this.stage.setting("schedule") === "constant" ? "" : `learning rate now ${plain(picture.rate)}`);
    this.mode.hidden = !this.stage.playing && mode === "compiling"; // it goes on when the training does
    this.mode.classList.toggle("calm", mode === "compiling");
    write(this.mode, mode === "compiling" ? "compiling …" : mode);
  }
}

function plain(rate) {
  return rate >= 0.001 || rate === 0 ? String(+rate.toPrecision(3)) : rate.toExponential(1);
}

export function lossText(points, loss) {
  if (!points || loss === undefined) return "–";
  if (loss === null) return "overflowed";
  return loss < 1e5 ? loss.toFixed(loss < 10 ? 4 : 1) : loss.toExponential(1).replace("+", "");
}

// Epochs and pictures a second, over the last second of playing.
class Speedometer {
  #marks = [];
  #text = "…";
  #written = 0;

  count({ playing, epochs }) {
    if (!playing || epochs < this.#marks.at(-1)?.epochs) [this.#marks, this.#text] = [[], "…"];
    if (!playing) return;
    this.#marks.push({ time: performance.now(), epochs });
    while (this.#marks.length > 2 && this.#marks.at(-1).time - this.#marks[0].time > 1000) this.#marks.shift();
  }

  read() {
    const now = performance.now();
    const [first, last] = [this.#marks[0], this.#marks.at(-1)];
    if (!first || last.time - first.time < 250 || now - this.#written < 250) return this.#text;
    const seconds = (last.time - first.time) / 1000;
    const rate = (last.epochs - first.epochs) / seconds;
    const pictures = (this.#marks.length - 1) / seconds;
    const digits = (value) => value.toFixed(value < 10 ? 1 : 0);
    this.#written = now;
    this.#text = `${digits(rate)} epochs/s · ${digits(pictures)} pictures/s`;
    return this.#text;
  }
}
