// Points of two classes and a straight boundary, w1 x1 + w2 x2 + b = 0, that three sliders move.

class Boundary {
  constructor(root, say) {
    this.root = root;
    root.innerHTML = `
      <svg role="img"></svg>
      <div class="side">
        <dl class="figures" aria-live="polite">
          <div><dt>loss</dt><dd data-say="loss"></dd></div>
          <div><dt>accuracy</dt><dd data-say="accuracy"></dd></div>
        </dl>
        <div class="sliders"></div>
        <p class="formula"></p>
      </div>`;
    this.svg = root.querySelector("svg");
    this.observer = new ResizeObserver(() => this.data && this.lay());
    this.observer.observe(this.svg);
    this.rest = () => say("weights", this.weights);
  }

  get weights() {
    return Object.fromEntries(Object.entries(this.sliders).map(([name, one]) => [name, one.value]));
  }

  show(data) {
    this.data = data;
    if (!this.sliders) {
      this.sliders = {};
      for (const [name, reach] of Object.entries(data.reach)) {
        const one = slider(name, { low: -reach, high: reach, step: "any" }, () => this.move(), this.rest);
        this.sliders[name] = one;
        this.root.querySelector(".sliders").append(one.row);
      }
    }
    for (const [name, one] of Object.entries(this.sliders)) {
      one.value = data.weights[name];
      one.mark(data.next?.[name] ?? null);
    }
    this.lay();
    this.say(data.loss, data.accuracy); // as needle has computed them
  }

  // Draw the points, in the size that there is.
  lay() {
    const { points, labels, domain, dataset } = this.data;
    if (!this.svg.getBoundingClientRect().width) return;
    this.axes = new Axes(this.svg, domain, domain, ["x1", "x2"]);
    const { x, y } = this.axes;
    this.svg.setAttribute("aria-label",
      `The ${points.length} points of ${dataset}, blue circles for +1 and orange squares for −1, with the boundary`);
    const inside = { "clip-path": "url(#inside)" };
    this.grounds = ["negative", "positive"].map((name) => draw("polygon", { class: `ground ${name}`, ...inside }));
    this.border = draw("line", { class: "border", ...inside });
    this.next = draw("line", { class: "next", ...inside });
    this.svg.append(...this.grounds);
    this.marks = points.map(([x1, x2], i) => {
      const [px, py] = [x(x1), y(x2)];
      const mark = labels[i] > 0
        ? draw("circle", { r: 4.5, cx: px, cy: py, ...inside })
        : draw("rect", { x: px - 4, y: py - 4, width: 8, height: 8, ...inside });
      this.svg.append(mark);
      return mark;
    });
    this.svg.append(this.border, this.next);
    this.place();
  }

  // The logit at a point.
  logit([x1, x2], { w1, w2, b }) {
    return w1 * x1 + w2 * x2 + b;
  }

  // Put the boundary where the sliders are.
  place() {
    const { domain: [low, high], points, labels, next } = this.data;
    const now = this.weights;
    const corners = [[low, low], [high, low], [high, high], [low, high]];
    const cut = (weights) => corners.flatMap((a, i) => {
      const c = corners[(i + 1) % 4];
      const [from, to] = [this.logit(a, weights), this.logit(c, weights)];
      if (from > 0 === to > 0) return [];
      const share = from / (from - to);
      return [[a[0] + share * (c[0] - a[0]), a[1] + share * (c[1] - a[1]), i]];
    });
    const line = (element, weights) => {
      const ends = weights ? cut(weights) : [];
      element.style.display = ends.length === 2 ? "" : "none";
      if (ends.length !== 2) return;
      const [[x1, y1], [x2, y2]] = ends;
      const { x, y } = this.axes;
      for (const [name, value] of Object.entries({ x1: x(x1), y1: y(y1), x2: x(x2), y2: y(y2) })) {
        element.setAttribute(name, value);
      }
    };
    line(this.border, now);
    line(this.next, next);
    const crossings = cut(now);
    [-1, 1].forEach((sign, k) => {
      const outline = corners.flatMap((corner, i) => [
        ...(sign * this.logit(corner, now) > 0 ? [corner] : []),
        ...crossings.filter(([, , edge]) => edge === i),
      ]);
      this.grounds[k].setAttribute("points", outline.map(([a, c]) => `${this.axes.x(a)},${this.axes.y(c)}`).join(" "));
    });
    this.marks.forEach((mark, i) => mark.classList.toggle("wrong", (this.logit(points[i], now) > 0) !== labels[i] > 0));
    const term = (value, name) => `${value < 0 ? "−" : "+"} ${written(Math.abs(value))}${name}`;
    this.root.querySelector(".formula").textContent =
      `Blue wins where ${written(now.w1)} x1 ${term(now.w2, " x2")} ${term(now.b, "")} is above 0.`;
  }

  // While a slider moves, the figures are computed here; at rest they come from needle.
  move() {
    const { points, labels } = this.data;
    const now = this.weights;
    const logits = points.map((point, i) => Math.sign(labels[i]) * this.logit(point, now));
    const loss = logits.reduce((sum, z) => sum + Math.max(-z, 0) + Math.log1p(Math.exp(-Math.abs(z))), 0);
    const right = points.filter((point, i) => (this.logit(point, now) > 0) === labels[i] > 0).length;
    this.data.next = null; // that step was one from elsewhere
    for (const one of Object.values(this.sliders)) one.mark(null);
    this.place();
    this.say(loss / points.length, right / points.length);
  }

  say(loss, accuracy) {
    this.root.querySelector("[data-say=loss]").textContent = loss.toFixed(3);
    this.root.querySelector("[data-say=accuracy]").textContent = `${(100 * accuracy).toFixed(0)} %`;
  }

  close() {
    this.observer.disconnect();
  }
}

export default lasting(Boundary);
