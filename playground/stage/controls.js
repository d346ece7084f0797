// The controls of all settings, made from the server's list of them.

import { labelColour } from "./colours.js";
import { stillImage } from "./draw.js";
import { thinned } from "./thinned.js";
import { capital, element, percent, write } from "./words.js";

const SENDING = 80; // milliseconds between two values of a slider that is being dragged
const OTHER = "other";
const SAMPLE = 88; // pixels of a data set's small picture

export class Controls {
  #shown = {}; // by name: a function that shows a text

  constructor(stage) {
    this.stage = stage;
  }

  build() {
    const { fields } = this.stage.welcome;
    this.#shown = {};
    for (const place of document.querySelectorAll("[data-part]")) {
      const field = fields[place.dataset.part];
      const make = field && this.#maker(place.dataset.part, field);
      if (!make) continue;
      place.replaceChildren();
      this.#shown[place.dataset.part] = make.call(this, place, place.dataset.part, field);
    }
  }

  // Shows the settings, and hides what a lesson does without.
  show() {
    for (const [name, show] of Object.entries(this.#shown)) show(this.stage.setting(name));
    for (const place of document.querySelectorAll("[data-part]")) {
      const name = place.dataset.part;
      const isIdle = name === "period" && this.stage.setting("schedule") === "constant";
      place.toggleAttribute("data-away", isIdle || this.stage.hides(name));
    }
  }

  #maker(name, field) {
    if (name === "dataset") return this.#pictures;
    if (field.percent) return this.#slider;
    const number = field.offers?.length ? this.#offers : this.#number;
    return { choice: this.#choice, switch: this.#switch, number }[field.kind];
  }

  #choice(place, name, field) {
    const select = element("select", { id: name, data: { field: name } });
    for (const choice of field.choices) select.add(new Option(capital(field.words[choice] ?? choice), choice));
    select.onchange = () => this.stage.set({ [name]: select.value });
    place.append(labelFor(name, field), select);
    return (text) => { select.value = text; };
  }

  #switch(place, name, field) {
    const box = element("input", { id: name, type: "checkbox", data: { field: name, option: name } });
    box.onchange = () => this.stage.set({ [name]: box.checked ? "on" : "off" });
    place.append(element("label", { className: "check", title: field.help }, box, capital(field.label)));
    return (text) => { box.checked = text === "on"; };
  }

  #slider(place, name, field) {
    const value = element("output", { htmlFor: name });
    const slider = element("input", {
      id: name, type: "range", min: field.low, max: field.high, step: field.step, data: { field: name } });
    const showValue = () => write(value, field.percent ? percent(slider.value) : slider.value);
    let waiting = null; // a value that was chosen and is not sent yet
    const send = thinned((chosen) => {
      waiting = null;
      this.stage.set({ [name]: chosen });
    }, SENDING);
    slider.oninput = () => {
      showValue();
      waiting = slider.value;
      send(waiting);
    };
    place.append(labelFor(name, field, value), slider);
    return (text) => {
      slider.value = waiting ?? text;
      showValue();
    };
  }

  #number(place, name, field) {
    const input = numberInput(name, field);
    let isTyping = false;
    input.oninput = () => { isTyping = true; };
    input.onchange = () => {
      isTyping = false;
      if (!this.#isRefused(input, field)) this.stage.set({ [name]: input.value });
      else input.value = this.stage.setting(name);
    };
    place.append(labelFor(name, field), input);
    return (text) => { if (!isTyping) input.value = text; };
  }

  // A list of usual numbers; its last line opens a place to type any other.
  #offers(place, name, field) {
    const select = element("select", { id: name, data: { field: name } });
    const input = numberInput(`${name}-other`, field);
    input.ariaLabel = field.label;
    input.hidden = true;
    const show = (text) => {
      const offers = field.offers.includes(text) ? field.offers : [...field.offers, text].sort((a, b) => a - b);
      select.replaceChildren(...offers.map((offer) => new Option(offer, offer)), new Option("Other …", OTHER));
      select.value = text;
    };
    select.onchange = () => {
      if (select.value !== OTHER) return this.stage.set({ [name]: select.value });
      input.value = this.stage.setting(name);
      [select.hidden, input.hidden] = [true, false];
      input.select();
    };
    input.onkeydown = ({ key }) => {
      if (key === "Escape") input.value = "";
      if (key === "Escape" || key === "Enter") input.blur();
    };
    input.onblur = () => {
      [select.hidden, input.hidden] = [false, true];
      if (!this.#isRefused(input, field) && input.value) this.stage.set({ [name]: input.value });
      show(this.stage.setting(name));
    };
    place.append(labelFor(name, field), select, input);
    return ifNew(show);
  }

  // A browser keeps a text that is no number, such as 1e400, to itself: the server would not know what came.
  #isRefused(input, field) {
    const isRefused = input.validity.badInput;
    if (isRefused) this.stage.tell(`${field.label} must be ${field.needed}.`, "error");
    return isRefused;
  }

  // The data sets as small pictures: classes, numbers, and an empty plane for one's own.
  #pictures(place, name, field) {
    const { regression } = this.stage.welcome;
    const word = (choice) => capital(field.words[choice] ?? choice);
    const chosen = element("span");
    const grid = element("div", {
      className: "pictures", role: "radiogroup", ariaLabel: field.label, data: { field: name } });
    const radios = {};
    const group = (kind, choices) => {
      for (const choice of choices) {
        const radio = radios[choice] = element("input", { type: "radio", name, value: choice, ariaLabel: choice });
        radio.onchange = () => this.stage.set({ [name]: choice });
        grid.append(element("label", { title: word(choice), className: kind }, radio, this.#sample(field, choice),
          element("span", { textContent: word(choice) })));
      }
    };
    group("classes", field.choices.filter((choice) => choice !== "own" && !regression.includes(choice)));
    grid.append(element("p", { className: "group", textContent: "Numbers" }));
    group("numbers", regression);
    group("empty", ["own"]);
    place.append(element("h2", { textContent: "Data" }, chosen), grid);
    return (text) => {
      if (radios[text]) radios[text].checked = true;
      write(chosen, word(text));
    };
  }

  #sample(field, choice) {
    const { arrays, domain, shapes } = this.stage.welcome;
    const at = field.choices.filter((other) => other !== "own").indexOf(choice);
    const [, points, numbers] = shapes.samples;
    const sample = arrays.samples.subarray(at * points * numbers, (at + 1) * points * numbers);
    return stillImage(SAMPLE, choice === "own" ? paintPlus : (pen) => paintSample(pen, sample, domain));
  }
}

// Calls only with another text than the last time: a list that is open must not be built anew.
function ifNew(show) {
  let last = null;
  return (text) => {
    if (text !== last) show(text);
    last = text;
  };
}

function labelFor(id, field, ...more) {
  return element("label", { htmlFor: id, title: field.help }, field.label, ...more);
}

function numberInput(id, field) {
  const input = element("input", {
    id, type: "number", min: field.low, max: field.high, step: field.step ?? "any", inputMode: "decimal",
    data: { field: id },
  });
  // A browser drops the comma of 0,1 without a word, and would read 01.
  input.addEventListener("beforeinput", (event) => {
    if (event.data !== ",") return;
    event.preventDefault();
    document.execCommand("insertText", false, ".");
  });
  return input;
}

function paintSample(pen, points, [low, high]) {
  const scale = SAMPLE / (high - low);
  for (let i = 0; i < points.length; i += 3) {
    pen.beginPath();
    pen.arc((points[i] - low) * scale, (high - points[i + 1]) * scale, SAMPLE / 32, 0, 2 * Math.PI);
    pen.fillStyle = labelColour(points[i + 2]);
    pen.fill();
  }
}

function paintPlus(pen) {
  pen.fillStyle = labelColour(1);
  pen.fillRect(SAMPLE * 0.3, SAMPLE * 0.47, SAMPLE * 0.4, SAMPLE * 0.06);
  pen.fillRect(SAMPLE * 0.47, SAMPLE * 0.3, SAMPLE * 0.06, SAMPLE * 0.4);
}
