// A player for the steps of a forward and a backward pass.
//
// Python gives one picture, and says what each frame is about. Here the parts of the picture become faint,
// normal or strong. See viz/step_data.py for the data. Of a compiled function, each frame is a page of its own,
// and one of them is seen; see viz/program_steps.py.

const SECONDS = 1.8;
const READABLE = 1; // pixels of the screen for a point of the picture; what has no room for that is scrolled
const LARGEST = 4;
const SMALLEST = 0.15; // for a step that has no room otherwise
const STEP = 1.25; // of the zoom
const NATURAL = 4 / 3;
const MARGIN = 12; // pixels that are seen around a step

// Build a player in an element. Returns functions to show a frame and to stop; `moved` is told of each new
// frame. Keys that are pressed within `keyboard` move it.
function play(root, data, moved, keyboard = root) {
  const last = data.frames.length - 1;
  let now = -1;
  let timer = 0;
  let scale = READABLE; // at least; 0: all of the picture is seen
  let shrinks = true; // for a step that has no room

  root.classList.add("needle-steps");
  if (data.scheme) root.style.colorScheme = data.scheme;
  else root.classList.add("needle-follows"); // whose rules are in the picture
  for (const [name, colour] of Object.entries(data.colours)) root.style.setProperty(`--${name}`, colour);
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", data.title);
  root.innerHTML = `
    <div class="bar">
      <button data-do="first" title="First frame (Home)" aria-label="First frame">|◀</button>
      <button data-do="back" title="Back (←)" aria-label="Back">◀</button>
      <button data-do="play" title="Play (space)" aria-label="Play">▶ Play</button>
      <button data-do="next" title="Next (→)" aria-label="Next">▶</button>
      <button data-do="last" title="Last frame (End)" aria-label="Last frame">▶|</button>
      <input type="range" min="0" max="${last}" value="0" aria-label="Frame">
      <span class="count"></span>
      <button data-do="fit" title="Show all of it (0); larger (+), smaller (−)" aria-pressed="false"
        >Fit</button>
      <label>Speed <select aria-label="Speed">
        <option value="0.5">½×</option><option value="1" selected>1×</option>
        <option value="2">2×</option><option value="4">4×</option>
      </select></label>
    </div>
    <ol class="order" aria-label="${data.ordered ?? "Topological order"}"></ol>
    <div class="picture">${data.svg || root.innerHTML}</div>
    <div class="now" aria-live="polite"><div class="title"></div><div class="equations"></div></div>`;
  const find = (selector) => root.querySelector(selector);
  const [slider, view, list] = [find("input"), find(".picture"), find(".order")];
  const svg = find("svg");
  const pages = svg ? [] : [...view.querySelectorAll(".page")];
  root.style.maxWidth = `max(1100px, ${(svg?.viewBox.baseVal.width ?? 0) + 22}px)`;
  const parts = [...root.querySelectorAll("svg [data-key]:not(.cluster)")].map((part) => {
    const key = part.dataset.key;
    return { part, key, since: since(key, data.since), edge: key.includes("->") };
  });
  const returned = new Set(data.frames.filter(({ phase }) => phase !== "forward").map(({ place }) => place));
  const names = data.order.map((name) => {
    const item = document.createElement("li");
    item.textContent = name;
    list.append(item);
    return item;
  });

  function show(number) {
    number = Math.min(Math.max(number, 0), last);
    if (number === now) return;
    now = number;
    const { phase, title, equations, place, key, marked } = data.frames[now];
    root.dataset.phase = phase;
    for (const { part, key: own, since, edge } of parts) {
      part.classList.toggle("ahead", since > now);
      part.classList.toggle("fresh", edge && since === now);
      part.classList.toggle("current", own === key || own.endsWith("_op") && since === now);
      part.classList.toggle("marked", marked.includes(own));
    }
    pages.forEach((page, i) => page.classList.toggle("current", i === now));
    find(".title").textContent = title;
    find(".equations").innerHTML = equations; // Python has escaped what is not its own
    slider.value = now;
    slider.setAttribute("aria-valuetext", title);
    find(".count").textContent = `${now + 1} / ${last + 1}`;
    names.forEach((item, i) => {
      item.classList.toggle("current", i === place);
      item.classList.toggle("done", phase === "forward" ? i < place : i > place && returned.has(i));
    });
    follow("smooth");
    list.scrollTop = names[place].offsetTop - (list.clientHeight - names[place].offsetHeight) / 2;
    for (const name of ["first", "back"]) find(`[data-do=${name}]`).disabled = now === 0;
    for (const name of ["next", "last"]) find(`[data-do=${name}]`).disabled = now === last;
    moved(now);
  }

  // Where the nodes are that this frame is about: what is used, the operators, and what comes out.
  function step() {
    const { key, marked } = data.frames[now];
    const fresh = parts.filter(({ since }) => since === now).flatMap((part) => part.key.split("->"));
    const keys = new Set([key, ...marked, ...fresh]);
    return around(parts.filter((part) => keys.has(part.key)).map(({ part }) => part));
  }

  // Scroll until all of the step is in sight. If it has no room, the picture is smaller for this frame. If that
  // would be too small, the current node is in sight.
  function follow(behavior, centred = false) {
    if (!svg) return followPage();
    const node = find(`svg [data-key="${data.frames[now].key}"]`);
    if (!node) return;
    const { clientWidth, clientHeight } = view;
    if (scale) {
      const [own, { width, height }] = [size(ownScale()), step()];
      const room = Math.min((clientWidth - 2 * MARGIN) / width, (clientHeight - 2 * MARGIN) / height);
      if (shrinks && room < 1 && room * own > SMALLEST) size(room * own);
    }
    let inner = step();
    const outer = view.getBoundingClientRect();
    if (inner.width > clientWidth || inner.height > clientHeight) inner = around([node]);
    const way = (begin, length, most) => {
      const off = inner[begin] + inner[length] / 2 - outer[begin] - most / 2;
      return centred || 2 * Math.abs(off) + inner[length] + MARGIN > most ? off : 0;
    };
    const [left, top] = [way("left", "width", clientWidth), way("top", "height", clientHeight)];
    const far = Math.abs(left) > outer.width || Math.abs(top) > outer.height;
    const stays = !left && !top;
    if (stays || far || matchMedia("(prefers-reduced-motion: reduce)").matches) behavior = "instant";
    view.scrollBy({ left, top, behavior }); // also by nothing: that ends a scroll to another node
  }

  // Scroll to the first line of a page that it changes.
  function followPage() {
    const line = pages[now].querySelector(".new, .gone, .changed") ?? pages[now];
    const off = line.getBoundingClientRect().top - view.getBoundingClientRect().top;
    if (off < 0 || off > 0.8 * view.clientHeight) view.scrollTop += off - view.clientHeight / 4;
  }

  // The scale of a picture whose step has room: it fills the page, up to its natural size.
  function ownScale() {
    return Math.max(scale, Math.min(view.clientWidth / svg.viewBox.baseVal.width, NATURAL));
  }

  function size(to) {
    svg.style.width = svg.style.minWidth = `${to * svg.viewBox.baseVal.width}px`;
    svg.style.setProperty("--ring", Math.min(Math.max(5 * to, 1.6), 4)); // it shows in a small picture too
    return to;
  }

  // Show so many pixels for a point of the picture; 0 means as many as fit.
  function zoom(to, keep = false) {
    scale = Math.min(to, LARGEST);
    shrinks = !keep;
    view.classList.toggle("fit", scale === 0);
    find("[data-do=fit]").setAttribute("aria-pressed", scale === 0);
    resized();
    follow("auto", true);
  }

  // The height stays the same from frame to frame, so that nothing below moves.
  function resized() {
    if (!svg) return;
    view.style.height = "";
    if (scale) size(ownScale());
    else svg.style.width = svg.style.minWidth = "";
    const fits = view.scrollWidth <= view.clientWidth && view.scrollHeight <= view.clientHeight;
    view.style.height = `${view.getBoundingClientRect().height}px`;
    find("[data-do=fit]").hidden = fits && scale === READABLE;
    follow("auto");
  }

  function start() {
    show(now === last ? 0 : now + 1); // at once: whoever presses Play wants to see something happen
    timer = setInterval(() => {
      if (now < last && root.isConnected) show(now + 1);
      else stop();
    }, 1000 * SECONDS / find("select").value);
    label("❚❚ Pause");
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    label("▶ Play");
  }

  function label(text) {
    const button = find("[data-do=play]");
    button.textContent = text;
    button.setAttribute("aria-label", text.split(" ")[1]);
  }

  const actions = {
    first: () => show(0),
    back: () => show(now - 1),
    next: () => show(now + 1),
    last: () => show(last),
    play: () => timer ? stop() : start(),
    fit: () => svg && zoom(scale === 0 ? READABLE : 0),
    larger: () => svg && zoom(STEP * svg.getScreenCTM().a, true),
    smaller: () => svg && zoom(svg.getScreenCTM().a / STEP, true),
  };
  const keys = {
    Home: "first", ArrowLeft: "back", ArrowRight: "next", End: "last", " ": "play",
    0: "fit", "+": "larger", "=": "larger", "-": "smaller",
  };
  const moving = ["first", "back", "next", "last"];

  function act(name) {
    if (moving.includes(name)) stop();
    actions[name]();
  }

  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) return act(button.dataset.do);
    const node = event.target.closest("svg .node");
    if (!node) return;
    const frame = data.frames.findIndex(({ key }) => key === node.dataset.key);
    stop();
    show(frame < 0 ? since(node.dataset.key, data.since) : frame);
  });
  keyboard.addEventListener("keydown", (event) => {
    const name = keys[event.key];
    const own = event.key === " " ? "button, select" : "select"; // does something of its own with it
    if (!name || event.target.closest(own) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    act(name);
    if (document.activeElement?.disabled) root.focus();
  });
  slider.addEventListener("input", () => {
    stop();
    show(slider.valueAsNumber);
  });
  find("select").addEventListener("change", () => {
    if (!timer) return;
    stop();
    start();
  });

  find("[data-do=fit]").hidden = !svg;
  show(0);
  if (svg) zoom(READABLE);
  new ResizeObserver(resized).observe(view);
  return { show, stop };
}

// The smallest rectangle around some elements.
function around(elements) {
  const all = elements.map((element) => element.getBoundingClientRect());
  const [left, top] = ["left", "top"].map((side) => Math.min(...all.map((x) => x[side])));
  const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...all.map((x) => x[side])));
  return { left, top, width: right - left, height: bottom - top };
}

// The frame in which a part of the picture appears; an edge appears with the later one of its ends.
function since(key, known) {
  const own = (end) => known[end.replace(/_op$/, "").replace(/^.*_for_/, "")] ?? 0;
  return Math.max(...key.split("->").map(own));
}

// Bring all new players of a page to life. They get the keys that are pressed within `keyboard`.
export function playAll(page, keyboard) {
  for (const root of page.querySelectorAll("[data-needle-steps]")) {
    const data = JSON.parse(root.dataset.needleSteps);
    delete root.dataset.needleSteps;
    play(root, data, () => {}, keyboard);
  }
}

// As a widget: the frame is shared with Python.
function render({ model, el }) {
  const { instead } = model.get("data"); // where there is no Graphviz
  if (instead) {
    el.innerHTML = instead;
    return;
  }
  const root = document.createElement("div");
  root.dataset.lmSuppressShortcuts = "true";
  el.append(root);
  const first = model.get("frame");
  let ready = false;
  const player = play(root, model.get("data"), (frame) => {
    if (!ready || frame === model.get("frame")) return;
    model.set("frame", frame);
    model.save_changes();
  });
  player.show(first);
  ready = true;
  const follow = () => player.show(model.get("frame"));
  model.on("change:frame", follow);
  return () => {
    player.stop();
    model.off("change:frame", follow);
  };
}

export default { render };
