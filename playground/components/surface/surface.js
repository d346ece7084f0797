// A function of x and y as a map in bands of equal height, with its gradient at a point that two sliders move.

const BANDS = 14;
const PIXELS = 300; // of the map's side; the page stretches it
const LONGEST = 0.28; // of the picture's side: the arrow of the steepest gradient

class Surface {
  constructor(root, say) {
    this.root = root;
    root.innerHTML = `
      <div class="map"><canvas width="${PIXELS}" height="${PIXELS}"></canvas><svg role="img"></svg></div>
      <div class="side">
        <dl class="figures" aria-live="polite">
          <div><dt>f(x, y)</dt><dd data-say="value"></dd></div>
          <div><dt>∂f/∂x</dt><dd class="slope" data-say="x"></dd></div>
          <div><dt>∂f/∂y</dt><dd class="slope" data-say="y"></dd></div>
        </dl>
        <div class="sliders"></div>
        <p>The stronger the blue, the higher: from <span data-say="lowest"></span> to
          <span data-say="highest"></span> and above, in bands of equal height. The arrow is the gradient: it points
          straight uphill, across the bands, and is longer where the hill is steeper.</p>
      </div>`;
    this.svg = root.querySelector("svg");
    this.observer = new ResizeObserver(() => this.data && this.lay());
    this.observer.observe(root);
    this.rest = () => say("place", this.sliders.map((one) => one.value));
    followPointer(this.svg, (event) => {
      this.axes.at(event).forEach((value, i) => (this.sliders[i].value = value));
      this.move();
    }, this.rest);
  }

  show(data) {
    this.data = data;
    const { low, high, values, start } = data;
    const step = (high - low) / (values.length - 1);
    this.sliders = ["x", "y"].map((name) => slider(name, { low, high, step }, () => this.move(), this.rest));
    this.sliders.forEach((one, i) => (one.value = start[i]));
    this.root.querySelector(".sliders").replaceChildren(...this.sliders.map(({ row }) => row));
    this.svg.setAttribute("aria-label",
      `A map of ${data.expression} for x and y from ${low} to ${high}, with an arrow for the gradient at a point`);
    ["lowest", "highest"].forEach((what, i) => this.say(what, written(data.range[i])));
    this.paint();
    this.lay();
  }

  say(what, words) {
    this.root.querySelector(`[data-say=${what}]`).textContent = words;
  }

  // The map: the values between the points of the grid, in bands.
  paint() {
    const { values, range: [lower, upper] } = this.data;
    const canvas = this.root.querySelector("canvas");
    const context = canvas.getContext("2d");
    const image = context.createImageData(PIXELS, PIXELS);
    const [red, green, blue] = getComputedStyle(canvas).color.match(/[\d.]+/g).map(Number);
    const last = values.length - 1;
    for (let v = 0; v < PIXELS; v++) {
      for (let u = 0; u < PIXELS; u++) {
        const [x, y] = [(u / (PIXELS - 1)) * last, (1 - v / (PIXELS - 1)) * last];
        const [i, j] = [Math.min(Math.floor(x), last - 1), Math.min(Math.floor(y), last - 1)];
        const [a, b] = [x - i, y - j];
        const corners = [values[j][i], values[j][i + 1], values[j + 1][i], values[j + 1][i + 1]];
        const place = 4 * (v * PIXELS + u);
        if (corners.includes(null)) continue;
        const height = (corners[0] * (1 - a) + corners[1] * a) * (1 - b) + (corners[2] * (1 - a) + corners[3] * a) * b;
        const band = Math.floor(((height - lower) / (upper - lower)) * BANDS);
        image.data.set([red, green, blue, 12 + (215 * Math.min(BANDS - 1, Math.max(0, band))) / (BANDS - 1)], place);
      }
    }
    context.putImageData(image, 0, 0);
  }

  lay() {
    const { low, high } = this.data;
    if (!this.svg.getBoundingClientRect().width) return;
    this.axes = new Axes(this.svg, [low, high], [low, high], ["x", "y"]);
    const { box } = this.axes;
    Object.assign(this.root.querySelector("canvas").style, {
      left: `${box.left}px`, top: `${box.top}px`, width: `${box.right - box.left}px`, height: `${box.bottom - box.top}px`,
    });
    this.arrow = draw("path", { class: "arrow" });
    this.dot = draw("circle", { r: 5 });
    this.svg.append(this.arrow, this.dot);
    this.move();
  }

  move() {
    const { low, high, values, slopes_x, slopes_y, steepest } = this.data;
    const [x, y] = this.sliders.map((one) => one.value);
    const [i, j] = [x, y].map((at) => Math.round(((at - low) / (high - low)) * (values.length - 1)));
    const [value, across, up] = [values[j][i], slopes_x[j][i], slopes_y[j][i]];
    this.say("value", written(value));
    this.say("x", written(across));
    this.say("y", written(up));
    const [px, py] = [this.axes.x(x), this.axes.y(y)];
    this.dot.setAttribute("cx", px);
    this.dot.setAttribute("cy", py);
    const steep = Math.hypot(across, up);
    const { box } = this.axes;
    const length = (box.right - box.left) * LONGEST * Math.sqrt(Math.min(1, steep / steepest));
    const there = across !== null && up !== null && steep > 0 && length > 1;
    this.arrow.style.display = there ? "" : "none";
    if (!there) return;
    const [dx, dy] = [across / steep, -up / steep];
    const [ex, ey] = [px + dx * length, py + dy * length];
    const barb = (side) => `${ex - 10 * dx + side * 6 * dy} ${ey - 10 * dy - side * 6 * dx}`;
    this.arrow.setAttribute("d", `M${px} ${py}L${ex} ${ey}M${barb(1)}L${ex} ${ey}L${barb(-1)}`);
  }

  close() {
    this.observer.disconnect();
  }
}

export default lasting(Surface);
