// What the elements of the pages share: SVG, axes, numbers, and sliders whose picture moves with them.

const SVG = "http://www.w3.org/2000/svg";

function draw(tag, attributes = {}, words = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = words;
  return made;
}

// A number as people read it, in four digits; null stands for what is not a number.
function written(value) {
  if (value === null || !Number.isFinite(value)) return "no number";
  const size = Math.abs(value);
  const short = size && (size < 1e-4 || size >= 1e6) ? value.toExponential(3) : String(Number(value.toPrecision(4)));
  return short.replaceAll("-", "−");
}

// Round numbers between two others, at most so many.
function ticks(low, high, most) {
  const least = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= 0.999 * least);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return found;
}

// Axes in an <svg>. `x` and `y` turn numbers into pixels, and `at` turns pixels into numbers.
class Axes {
  constructor(svg, [left, right], [lower, upper], names) {
    const { width, height } = svg.getBoundingClientRect();
    const unit = parseFloat(getComputedStyle(svg).fontSize) / 12;
    this.box = { left: 46 * unit, top: 10, right: width - 12, bottom: height - 26 * unit };
    const { box } = this;
    const across = (box.right - box.left) / (right - left);
    const up = (box.bottom - box.top) / (upper - lower);
    this.x = (value) => box.left + (value - left) * across;
    this.y = (value) => box.bottom - (value - lower) * up;
    this.at = (event) => {
      const place = svg.getBoundingClientRect();
      return [left + (event.clientX - place.left - box.left) / across,
        lower + (box.bottom - (event.clientY - place.top)) / up];
    };
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const clip = draw("clipPath", { id: "inside" });
    clip.append(draw("rect", {
      x: box.left, y: box.top, width: Math.max(box.right - box.left, 0), height: Math.max(box.bottom - box.top, 0),
    }));
    svg.append(clip);
    for (const value of ticks(left, right, Math.max(2, Math.floor(width / (70 * unit))))) {
      svg.append(draw("line", { class: value === 0 ? "zero" : "grid", x1: this.x(value), x2: this.x(value), y1: box.top, y2: box.bottom }));
      svg.append(draw("text", { x: this.x(value), y: box.bottom + 16 * unit, "text-anchor": "middle" }, written(value)));
    }
    for (const value of ticks(lower, upper, Math.max(2, Math.floor(height / (44 * unit))))) {
      svg.append(draw("line", { class: value === 0 ? "zero" : "grid", y1: this.y(value), y2: this.y(value), x1: box.left, x2: box.right }));
      svg.append(draw("text", { x: box.left - 6, y: this.y(value) + 4 * unit, "text-anchor": "end" }, written(value)));
    }
    svg.append(draw("text", { class: "name", x: box.right, y: box.bottom - 6, "text-anchor": "end" }, names[0]));
    svg.append(draw("text", { class: "name", x: box.left + 6, y: box.top + 12 * unit }, names[1]));
  }
}

// The path through points; it is interrupted where a value is not a number.
function pathThrough(points) {
  let drawn = false;
  return points.map(([x, y]) => {
    if (y === null || !Number.isFinite(y)) {
      drawn = false;
      return "";
    }
    const word = `${drawn ? "L" : "M"}${x.toFixed(1)} ${Math.max(-1e4, Math.min(1e4, y)).toFixed(1)}`;
    drawn = true;
    return word;
  }).join("");
}

// A slider with its name and its number. `moved` is called at each move, `rested` when it is let go.
function slider(name, { low, high, step }, moved, rested) {
  const row = document.createElement("label");
  row.className = "slider";
  row.innerHTML = '<b></b><span class="track"><input type="range"><i hidden></i></span><output></output>';
  const [label, track, output] = row.children;
  const [input, mark] = track.children;
  label.textContent = name;
  Object.assign(input, { min: low, max: high, step });
  input.setAttribute("aria-label", name);
  input.addEventListener("input", () => {
    output.textContent = written(Number(input.value));
    moved();
  });
  input.addEventListener("change", rested);
  return {
    row,
    get value() { return Number(input.value); },
    set value(value) {
      input.value = value;
      output.textContent = written(Number(input.value));
    },
    // Show where the slider would go; null shows nothing.
    mark(value) {
      mark.hidden = value === null;
      if (value !== null) mark.style.left = `${100 * Math.min(1, Math.max(0, (value - low) / (high - low)))}%`;
    },
  };
}

// Make an element once, and tell it from then on when its data has changed. A class has show(data) and close(). Its
// constructor gets its place on the page, and a function that tells Python a value, such as say("place", 3).
//
// Streamlit calls again whenever the data is sent again. If a newer call is already on its way, it ends the older
// one as soon as that has returned; so only the end of the newest call is the end of the element.
function lasting(Kind) {
  const made = new WeakMap(); // each element, and the data that it shows
  return ({ parentElement, data, setStateValue }) => {
    const root = parentElement.querySelector(`.${Kind.name.toLowerCase()}`);
    const say = (...news) => window.sayOnArrival(() => made.has(root) && setStateValue(...news));
    if (!made.has(root)) made.set(root, { element: new Kind(root, say) });
    const its = made.get(root);
    const call = (its.newest = {});
    const text = JSON.stringify({ ...data, start: null }); // where it stands now, the browser knows best
    if (its.text !== text) {
      its.text = text;
      its.element.show(data);
    }
    return () => {
      if (its.newest !== call || made.get(root) !== its) return;
      its.element.close();
      made.delete(root);
    };
  };
}

// Call `follow` with the numbers at the pointer while it is pressed on a picture, and `rested` at the end.
function followPointer(svg, follow, rested) {
  let pressed = false;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pressed = true;
    svg.setPointerCapture(event.pointerId);
    follow(event);
  });
  svg.addEventListener("pointermove", (event) => pressed && follow(event));
  for (const end of ["pointerup", "pointercancel"]) {
    svg.addEventListener(end, () => {
      if (pressed) rested();
      pressed = false;
    });
  }
}
