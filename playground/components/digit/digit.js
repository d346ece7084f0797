// A sheet to draw a digit on, with what a network makes of it. The sheet itself is that of viz.pad: its script
// comes before this one, and finds here the model that it has in a notebook.

const LATE = 1500; // milliseconds after which an answer is no longer waited for
const SCALE = 3; // pixels of a canvas for a pixel of an image: enough for a sharp edge

class Digit {
  constructor(root, say) {
    this.root = root;
    this.send = (pixels) => say("pixels", pixels);
    this.heard = {};
    this.model = {
      get: (name) => this.state[name],
      set: (name, value) => (this.state[name] = value),
      save_changes: () => this.tell(),
      on: (name, call) => (this.heard[name] = call),
      off: (name) => delete this.heard[name],
    };
  }

  show(data) {
    this.data = data;
    const isNew = !this.state || this.state.drawn !== data.drawn;
    if (!this.state) {
      this.state = { ...data };
      this.root.innerHTML = '<div class="pad"></div><div class="views"></div>';
      this.end = render({ model: this.model, el: this.root.querySelector(".pad") });
    }
    Object.assign(this.state, { said: data.said, drawn: data.drawn });
    this.heard["change:said"]?.();
    if (isNew) { // Python has drawn something else
      this.state.pixels = data.pixels;
      this.heard["change:pixels"]?.();
    }
    this.views();
    this.waits = false;
    this.ask();
  }

  // Tell what was drawn meanwhile. A network that learns learns on with each answer.
  ask() {
    if (this.news || this.data.learns) this.tell();
  }

  // One message at a time: the next one leaves when the last one was answered.
  tell() {
    this.news = this.waits;
    if (this.waits) return;
    this.waits = true;
    const asked = (this.asked = {});
    setTimeout(() => {
      if (this.asked !== asked || !this.waits) return;
      this.waits = false;
      this.ask();
    }, LATE);
    this.send(this.state.pixels.map((ink) => Math.round(9 * ink)).join(""));
  }

  // Small images, each with its number: what the network sees, what it looks for, what it finds.
  views() {
    const place = this.root.querySelector(".views");
    place.innerHTML = this.data.views.map(({ title, images }) => `
      <section><h3></h3><div class="images">${images.map(({ values }) =>
        `<figure><canvas role="img" width="${SCALE * values[0].length}" height="${SCALE * values.length}"></canvas><figcaption></figcaption></figure>`).join("")}
      </div></section>`).join("");
    this.data.views.forEach(({ title, images }, k) => {
      const section = place.children[k];
      section.querySelector("h3").textContent = title;
      section.querySelectorAll("figure").forEach((figure, i) => {
        const { name, values, caption, strength } = images[i];
        const [canvas, words] = figure.children;
        canvas.setAttribute("aria-label", name);
        figure.title = name;
        words.textContent = caption;
        if (strength !== undefined) figure.style.setProperty("--strength", strength);
        paint(canvas, values);
      });
    });
  }

  close() {
    this.asked = null; // nobody asks on
    this.end?.();
  }
}

// Numbers from -1 to 1: blue above 0, orange below, and the ground of the page at 0.
function paint(canvas, values) {
  const context = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  const [blue, orange] = [style.color, style.getPropertyValue("--orange")];
  values.forEach((row, y) => row.forEach((value, x) => {
    context.globalAlpha = Math.min(1, Math.abs(value));
    context.fillStyle = value < 0 ? orange : blue;
    context.fillRect(SCALE * x, SCALE * y, SCALE, SCALE);
  }));
}

export default lasting(Digit);
