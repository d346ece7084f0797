// A function and its derivative over x. The slider moves the tangent: its slope is the height of the lower curve.

class Curve {
  constructor(root, say) {
    this.root = root;
    root.innerHTML = `
      <dl class="figures" aria-live="polite">
        <div><dt>x</dt><dd data-say="x"></dd></div>
        <div><dt>f(x)</dt><dd data-say="value"></dd></div>
        <div><dt>f′(x), the slope of the tangent</dt><dd class="slope" data-say="slope"></dd></div>
      </dl>
      <div class="pictures"><svg role="img" class="f"></svg><svg role="img" class="df"></svg></div>`;
    this.pictures = [...root.querySelectorAll("svg")];
    this.observer = new ResizeObserver(() => this.data && this.lay());
    this.observer.observe(root);
    this.rest = () => say("place", this.slider.value);
    for (const svg of this.pictures) {
      followPointer(svg, (event) => {
        this.slider.value = this.axes[0].at(event)[0];
        this.move();
      }, this.rest);
    }
  }

  show(data) {
    this.data = data;
    const { low, high, values } = data;
    this.slider?.row.remove();
    this.slider = slider("x", { low, high, step: (high - low) / (values.length - 1) }, () => this.move(), this.rest);
    this.slider.value = data.start;
    this.root.append(this.slider.row);
    this.lay();
  }

  // Draw all that does not move, in the size that there is.
  lay() {
    const { low, high, values, slopes, range, slope_range, expression } = this.data;
    const [f, df] = this.pictures;
    if (!f.getBoundingClientRect().width) return;
    this.xs = values.map((_, i) => low + (i * (high - low)) / (values.length - 1));
    this.axes = [
      new Axes(f, [low, high], range, ["x", "f(x)"]),
      new Axes(df, [low, high], slope_range, ["x", "f′(x)"]),
    ];
    f.setAttribute("aria-label", `The curve of ${expression} for x from ${low} to ${high}, with its tangent`);
    df.setAttribute("aria-label", `The curve of the derivative of ${expression}`);
    [values, slopes].forEach((heights, i) => {
      const { x, y } = this.axes[i];
      const points = this.xs.map((at, k) => [x(at), heights[k] === null ? null : y(heights[k])]);
      const inside = { "clip-path": "url(#inside)" };
      this.pictures[i].append(draw("path", { class: i ? "slopes" : "values", d: pathThrough(points), ...inside }));
    });
    this.tangent = draw("line", { class: "tangent", "clip-path": "url(#inside)" });
    this.height = draw("line", { class: "height", "clip-path": "url(#inside)" });
    this.dots = this.pictures.map(() => draw("circle", { r: 5, "clip-path": "url(#inside)" }));
    f.append(this.tangent, this.dots[0]);
    df.append(this.height, this.dots[1]);
    this.move();
  }

  move() {
    const { low, high, values, slopes } = this.data;
    const i = Math.round(((this.slider.value - low) / (high - low)) * (values.length - 1));
    const [at, value, slope] = [this.xs[i], values[i], slopes[i]];
    const say = (what, words) => (this.root.querySelector(`[data-say=${what}]`).textContent = words);
    say("x", written(at));
    say("value", written(value));
    say("slope", written(slope));
    [value, slope].forEach((height, k) => {
      const { x, y } = this.axes[k];
      this.dots[k].style.display = height === null ? "none" : "";
      if (height === null) return;
      this.dots[k].setAttribute("cx", x(at));
      this.dots[k].setAttribute("cy", y(height));
    });
    const [{ x, y }, lower] = this.axes;
    const there = value !== null && slope !== null;
    this.tangent.style.display = this.height.style.display = there ? "" : "none";
    if (!there) return;
    const ends = [low, high].map((end) => [x(end), y(value + slope * (end - at))]);
    set(this.tangent, { x1: ends[0][0], y1: ends[0][1], x2: ends[1][0], y2: ends[1][1] });
    set(this.height, { x1: lower.x(at), y1: lower.y(0), x2: lower.x(at), y2: lower.y(slope) });
  }

  close() {
    this.observer.disconnect();
  }
}

function set(thing, attributes) {
  for (const [name, value] of Object.entries(attributes)) thing.setAttribute(name, Math.max(-1e5, Math.min(1e5, value)));
}

export default lasting(Curve);
