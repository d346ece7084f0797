// A picture with sliders below it.
//
// A frame is the number of a picture and the texts in it; Python computes frames beforehand, and in a live
// kernel any other when it is asked. See viz/drag.py for the data.

const PATIENCE = 700; // milliseconds without an answer from Python; then a frame computed beforehand is shown
const MOVE = 250; // milliseconds in which boxes go to their places in another picture
const LEAST_SCALE = 0.8; // pixels for a point of a picture: what has no room for that is scrolled
const LARGEST_SCALE = 4 / 3;

// Build sliders in an element. `ask` sends {number, places} to Python, whose answer goes to the returned
// function; without it there are the frames alone.
function drag(root, data, ask) {
  const { sliders, frames, pictures } = data;
  const starts = sliders.map(({ start }) => start);
  const id = `needle-drag-${Math.random().toString(36).slice(2)}`;
  root.classList.add("needle-drag");
  if (data.scheme) root.style.colorScheme = data.scheme;
  else root.classList.add("needle-follows");
  for (const [key, colour] of Object.entries(data.colours)) root.style.setProperty(`--${key}`, colour);
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", data.title);
  root.innerHTML = `
    <div class="stage">
      <div class="picture"><div class="sheet"></div></div>
      <p class="trouble" role="status"></p>
    </div>
    <div class="sliders"></div>
    <p class="note" aria-live="polite"></p>`;
  const find = (selector) => root.querySelector(selector);
  const [view, sheet, trouble, note] = [".picture", ".sheet", ".trouble", ".note"].map(find);

  let reach = ask ? "all" : "few"; // which stops the sliders reach
  let on; // the picture on show
  let texts = []; // elements of it, one for each number
  let room = []; // their widths at most
  let number = 0; // of the last question
  let waiting = null; // the number of the question without an answer, …
  let asked; // … and its places
  let later = false; // whether the sliders moved since
  let timer = 0;
  let last = 0; // the slider that moved last

  const inputs = sliders.map((slider, i) => {
    const row = document.createElement("div");
    row.className = "slider";
    row.innerHTML = '<label></label><input type="range" min="0" step="1"><span class="value" aria-hidden="true"></span>';
    const [label, input, value] = row.children;
    label.textContent = slider.name;
    label.htmlFor = input.id = `${id}-${i}`;
    value.style.minWidth = `min(${Math.max(...slider.labels.map((x) => x.length))}ch, 8em)`; // then it wraps
    find(".sliders").append(row);
    input.addEventListener("input", () => {
      last = i;
      moved();
    });
    input.addEventListener("keydown", (event) => {
      if (/^(Arrow|Page|Home|End)/.test(event.key)) event.stopPropagation(); // a notebook has them move cells
    });
    return input;
  });

  // The places of the sliders' stops, and back.
  const stopOf = (i) => (reach === "all" ? inputs[i].valueAsNumber : sliders[i].few[inputs[i].valueAsNumber]);
  const places = () => sliders.map((_, i) => stopOf(i));

  function put(wanted) {
    sliders.forEach(({ few, labels }, i) => {
      inputs[i].max = (reach === "all" ? labels : few).length - 1;
      inputs[i].value = reach === "all" ? wanted[i] : nearest(few, wanted[i]);
    });
    write();
  }

  function write() {
    sliders.forEach(({ labels }, i) => {
      const text = labels[stopOf(i)];
      inputs[i].nextElementSibling.textContent = text;
      inputs[i].setAttribute("aria-valuetext", text);
    });
  }

  function moved() {
    if (reach === "few" && !data.together) put(starts.map((start, i) => (i === last ? stopOf(i) : start)));
    write();
    if (!ask) return fromFrames();
    const slow = waiting !== null && !timer; // Python has not answered for long
    if (slow || places().join() in frames) fromFrames(); // at once, until it answers
    later = true;
    send();
  }

  // Ask Python for the frame of the newest places, one at a time.
  function send() {
    if (!later || waiting !== null) return;
    later = false;
    waiting = ++number;
    asked = places();
    timer = setTimeout(() => {
      timer = 0;
      fromFrames();
    }, PATIENCE);
    ask({ number, places: asked });
  }

  function answer({ number: answered, frame, pictures: more }) {
    Object.assign(pictures, more);
    if (frame[0] in more) resized();
    if (answered !== waiting) return;
    clearTimeout(timer);
    [waiting, timer] = [null, 0];
    note.textContent = "";
    if (frame[0] !== "now") frames[asked.join()] = frame;
    if (!later || !(places().join() in frames)) show(frame);
    send();
  }

  // The frame of these places, or else the nearest of those computed beforehand.
  function fromFrames() {
    let there = places();
    const exact = there.join() in frames;
    if (!exact) there = there.map((place, i) => sliders[i].few[nearest(sliders[i].few, place)]);
    if (!exact && !data.together) there = starts.map((start, i) => (i === last ? there[i] : start));
    show(frames[there.join()]);
    const named = there.map((place, i) => `${sliders[i].name} = ${sliders[i].labels[place]}`).join(", ");
    const shown = exact ? "" : `Python has not answered yet. This was computed beforehand: ${named}.`;
    note.textContent = ask ? shown : data.note;
  }

  function show([picture, written]) {
    trouble.textContent = picture < 0 ? written[0] : "";
    root.classList.toggle("failed", picture < 0);
    if (picture < 0) return;
    if (pictures[picture] !== on) turn(pictures[picture]);
    texts.forEach((text, i) => {
      if (text.textContent === written[i]) return;
      text.textContent = written[i];
      text.removeAttribute("textLength");
      if (text.getComputedTextLength() > room[i]) text.setAttribute("textLength", room[i]);
    });
  }

  // Show another picture: boxes that are in both go to their new places.
  function turn(picture) {
    on = picture;
    const before = new Map(nodes().map((node) => [node.dataset.key, middle(node)]));
    const { markup, nodes: numbered } = picture;
    const holder = document.createElement("template");
    holder.innerHTML = markup;
    const [image, next] = [sheet, holder.content].map((x) => x.querySelector("img"));
    if (image && next) {
      image.alt = next.alt;
      image.src = next.src; // the old one stays until this is loaded
    } else {
      sheet.replaceChildren(holder.content);
    }
    const svg = sheet.querySelector("svg");
    texts = numbered.flatMap(([key, count]) => {
      const node = svg.querySelector(`.node[data-key="${key}"]`);
      const own = [...node.querySelectorAll("text")].slice(-count);
      if (picture.centred) centre(node, own);
      return own;
    });
    room = texts.map((text) => Number(text.getAttribute("textLength")) || Infinity);
    if (svg?.viewBox.baseVal?.width) svg.style.minWidth = `${LEAST_SCALE * svg.viewBox.baseVal.width}px`;
    if (!before.size || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const timing = { duration: MOVE, easing: "ease-out" };
    const scale = svg?.getScreenCTM().a;
    for (const node of nodes()) {
      const [from, to] = [before.get(node.dataset.key), middle(node)];
      const [x, y] = from ? [0, 1].map((i) => (from[i] - to[i]) / scale) : [0, 0];
      node.animate(from ? { transform: [`translate(${x}px, ${y}px)`, "none"] } : { opacity: [0, 1] }, timing);
    }
    for (const edge of svg?.querySelectorAll(".edge, .cluster") ?? []) edge.animate({ opacity: [0, 1] }, timing);
  }

  const nodes = () => [...sheet.querySelectorAll("svg .node[data-key]")];

  // There is room for the largest picture, so that the sliders stay where they are.
  function resized() {
    const sizes = pictures.map(({ markup }) => /viewBox="\S+ \S+ (\S+) (\S+)"/.exec(markup)).filter(Boolean);
    if (!sizes.length) return;
    view.style.width = `${Math.ceil(LARGEST_SCALE * Math.max(...sizes.map(([, x]) => x)))}px`;
    const heights = sizes.map(([, x, y]) =>
      y * Math.min(Math.max(view.clientWidth / x, LEAST_SCALE), LARGEST_SCALE));
    sheet.style.minHeight = `${Math.ceil(Math.max(...heights))}px`;
    view.tabIndex = view.scrollWidth > view.clientWidth ? 0 : -1; // so that keys can scroll it
  }

  put(starts);
  show(frames[starts.join()]);
  note.textContent = ask ? "" : data.note;
  new ResizeObserver(resized).observe(view);
  return answer;
}

const middle = (node) => {
  const { left, top, width, height } = node.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
};

// Let texts stay in the middle of their box whatever is written in them.
function centre(node, texts) {
  const { x, width } = node.querySelector("path, polygon, ellipse").getBBox();
  for (const text of texts) {
    text.setAttribute("x", x + width / 2);
    text.setAttribute("text-anchor", "middle");
  }
}

// Where in a sorted list the number nearest to another one is.
const nearest = (list, wanted) =>
  list.reduce((best, x, i) => (Math.abs(x - wanted) < Math.abs(list[best] - wanted) ? i : best), 0);

// Bring all new sliders of a page to life.
function dragAll(page) {
  for (const root of page.querySelectorAll("[data-needle-drag]")) {
    const packed = root.dataset.needleDrag;
    delete root.dataset.needleDrag; // the next script of the page leaves this one alone
    unpack(packed).then((data) => drag(root, data));
  }
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// As a widget: Python computes each move.
function render({ model, el }) {
  const root = document.createElement("div");
  root.dataset.lmSuppressShortcuts = "true";
  el.append(root);
  const answer = drag(root, structuredClone(model.get("data")), (question) => model.send(question));
  model.on("msg:custom", answer);
  return () => model.off("msg:custom", answer);
}

export default { render };
