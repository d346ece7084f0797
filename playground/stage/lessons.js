// Lessons: a question, choices to commit to before one sees, and a page set up for it.

import { element, grouped } from "./words.js";

export class Lessons {
  #isForgotten = false;
  #isOver = true; // the reader has predicted, seen and been told

  constructor(stage) {
    this.stage = stage;
    this.menu = document.querySelector("#lessons");
    this.bar = document.querySelector(".lesson");
  }

  build() {
    this.menu.replaceChildren(...this.stage.welcome.lessons.map(({ title, question, address }) =>
      element("a", { className: "item", href: address },
        element("b", { textContent: title }), element("span", { textContent: question }))));
    document.querySelector("[data-opens=lessons]").hidden = !this.stage.welcome.lessons.length;
  }

  // While a lesson asks, nothing else may give its answer away.
  get asks() {
    return Boolean(this.shown) && !this.#isOver;
  }

  // The lesson that is shown next begins, even if it is the same.
  forget() {
    this.#isForgotten = true;
  }

  show() {
    const lesson = this.stage.welcome.lessons.find(({ name }) => name === this.stage.setting("lesson"));
    if (lesson?.name === this.shown?.name && !this.#isForgotten) return;
    this.#isForgotten = false;
    this.shown = lesson;
    this.chosen = null;
    this.#isOver = false;
    this.bar.hidden = !lesson;
    document.documentElement.classList.toggle("has-lesson", Boolean(lesson));
    if (!lesson) return;
    this.answer = element("span", { className: "lesson-answer", role: "status" },
      "Choose what you expect, and then let the network learn.");
    const byName = [...lesson.prediction].sort(([a], [b]) => a.localeCompare(b, "en")); // the right one comes first
    this.choices = byName.map(([choice]) => {
      const button = element("button", { textContent: choice, ariaPressed: "false" });
      button.onclick = () => this.#choose(choice);
      return button;
    });
    const leave = element("a", { href: location.pathname, textContent: "Leave" });
    this.bar.replaceChildren(element("b", { textContent: lesson.question }), ...this.choices, leave, this.answer);
  }

  #choose(choice) {
    this.chosen = choice;
    for (const button of this.choices) button.ariaPressed = String(button.textContent === choice);
    this.answer.textContent = `Now let it learn: the answer comes after ${grouped(this.shown.epochs)} epochs.`;
    this.follow();
    this.stage.onChange("lesson");
  }

  // Tells right from wrong once the reader has chosen and the network has shown it.
  follow() {
    const { picture } = this.stage;
    if (!this.asks || !this.chosen || !picture.epochs) return;
    if (picture.epochs < this.shown.epochs && !picture.trouble) return;
    this.#isOver = true;
    for (const button of this.choices) button.disabled = true;
    const [right] = this.shown.prediction[0];
    const [, why] = this.shown.prediction.find(([choice]) => choice === this.chosen);
    const verdict = element("b", { textContent: this.chosen === right ? "✓ Right. " : "✗ Not this time. " });
    this.answer.replaceChildren(verdict, `${why} `, ...this.#wayOn());
  }

  #wayOn() {
    const { lessons } = this.stage.welcome;
    const next = lessons[lessons.indexOf(this.shown) + 1];
    if (next) return [element("a", { href: next.address, textContent: `Next lesson: ${next.title}` })];
    return ["This was the last lesson. ", element("a", { href: location.pathname, textContent: "Back to the playground" })];
  }
}
