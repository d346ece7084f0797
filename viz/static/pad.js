// A sheet to draw on. Python builds its markup and answers what is drawn; see viz/pad.py.

const NAMED = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function render({ model, el }) {
  const holder = document.createElement("div");
  holder.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves the keys to the sheet
  holder.innerHTML = model.get("markup");
  el.append(holder);
  const find = (selector) => holder.querySelector(selector);
  const [svg, list, trouble] = [find("svg"), find("ol"), find(".trouble")];
  const cells = [...svg.querySelectorAll("rect")];
  const { width, height } = svg.viewBox.baseVal;
  const brush = 0.4 + height / 24; // how far ink reaches from the middle of a stroke, in pixels of the sheet
  const cursor = svg.querySelector("rect").cloneNode();
  cursor.setAttribute("class", "cursor");
  svg.append(cursor);
  svg.tabIndex = 0;
  svg.setAttribute("role", "application"); // its keys are its own
  svg.setAttribute("aria-label", `${svg.getAttribute("aria-label")}: arrows move, space draws, Delete clears`);
  svg.style.touchAction = "none"; // a finger draws, and does not scroll
  svg.style.cursor = "crosshair";

  let pixels = [];
  let erases = false;
  let from = null; // the last point of the stroke
  let place = [0, 0]; // of the cursor
  let due = 0;

  function show() {
    pixels = [...model.get("pixels")];
    cells.forEach((cell, i) => cell.setAttribute("fill-opacity", pixels[i]));
  }

  function put(i, ink) {
    pixels[i] = Math.round(ink * 1000) / 1000;
    cells[i].setAttribute("fill-opacity", pixels[i]);
  }

  // Tell Python, once for each picture that the screen shows.
  function tell() {
    due ||= requestAnimationFrame(() => {
      due = 0;
      model.set("pixels", [...pixels]);
      model.save_changes();
    });
  }

  function stroke(a, b) {
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const [px, py] = [x + 0.5 - a.x, y + 0.5 - a.y];
        const along = Math.min(1, Math.max(0, (px * dx + py * dy) / (dx * dx + dy * dy || 1)));
        const ink = Math.min(1, Math.max(0, brush + 0.5 - Math.hypot(px - along * dx, py - along * dy)));
        const i = y * width + x;
        const now = erases ? Math.min(pixels[i], 1 - ink) : Math.max(pixels[i], ink);
        if (now !== pixels[i]) put(i, now);
      }
    }
    tell();
  }

  const point = ({ clientX, clientY }) => new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());

  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    svg.setPointerCapture(event.pointerId);
    svg.focus({ preventScroll: true });
    from = point(event);
    stroke(from, from);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!from) return;
    const to = point(event);
    stroke(from, to);
    from = to;
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => (from = null));

  function clear() {
    cells.forEach((_, i) => put(i, 0));
    tell();
  }

  svg.addEventListener("keydown", (event) => {
    const { key } = event;
    if (key in NAMED) {
      const [dx, dy] = NAMED[key];
      place = [Math.min(width - 1, Math.max(0, place[0] + dx)), Math.min(height - 1, Math.max(0, place[1] + dy))];
      cursor.setAttribute("x", place[0]);
      cursor.setAttribute("y", place[1]);
    } else if (key === " ") {
      const i = place[1] * width + place[0];
      put(i, pixels[i] < 0.5 ? 1 : 0);
      tell();
    } else if (key === "Delete" || key === "Backspace") {
      clear();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  const buttons = [...holder.querySelectorAll("button")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      if (button.dataset.do === "clear") return clear();
      erases = button.dataset.do === "erase";
      for (const other of buttons) {
        if (other.hasAttribute("aria-pressed")) other.setAttribute("aria-pressed", other === button);
      }
    });
  }

  // The rows of Python's answers; new elements only where their number changes, so that bars glide.
  function answer() {
    const { rows, trouble: words } = model.get("said");
    trouble.textContent = words ?? "";
    const most = Math.max(...rows.map(([, share]) => share));
    while (list.children.length > rows.length) list.lastChild.remove();
    rows.forEach(([name, share], i) => {
      if (!list.children[i]) {
        list.insertAdjacentHTML("beforeend", '<li><span></span><span class="bar"><i></i></span><span></span></li>');
      }
      const [label, bar, number] = list.children[i].children;
      list.children[i].className = share > 0 && share === most ? "most" : "";
      label.textContent = name;
      bar.firstChild.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
      number.textContent = `${Math.round(100 * share)}%`;
    });
  }

  const heard = () => due || show(); // while a stroke is on its way, the sheet knows better
  model.on("change:said", answer);
  model.on("change:pixels", heard);
  show();
  answer();
  return () => {
    model.off("change:said", answer);
    model.off("change:pixels", heard);
  };
}

export default { render };
