// A compiled function: its graph beside its source, or its source before and after fusion.
//
// Python gives the graph as an SVG, and for each line of source the label of its group and the operators whose
// statement it is; see viz/program_data.py. Here one lights up the other.

const POINT = 4 / 3; // pixels of the page for a point of the picture
const HINT = "Point at a group, tap it, or go to it with Tab; the arrow keys go from statement to statement.";

function program(root, data) {
  root.classList.add("needle-program");
  for (const [name, colour] of Object.entries(data.colours)) root.style.setProperty(`--${name}`, colour);
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", data.title);
  root.replaceChildren();
  const groups = new Map(data.groups.map((group) => [group.label, group]));
  const labels = new Map(data.groups.map((group) => [group.key, group.label]));

  const panes = add(root, "div", "panes");
  panes.classList.toggle("before-after", data.listings.length > 1);
  const view = data.graph ? graphPane() : null;
  const lines = data.listings.flatMap(sourcePane);
  const said = add(root, "p", "said");
  said.setAttribute("aria-live", "polite");
  if (data.stored.length) storedTable();
  const shapes = view ? [...view.querySelectorAll("svg [data-key]")].map(known) : [];

  function graphPane() {
    const section = add(panes, "section");
    const title = add(section, "h4");
    add(title, "span").textContent = "operators, in their fused groups";
    const fit = add(title, "button");
    fit.textContent = "Fit";
    fit.title = "Show all of it, or let words be readable";
    const view = scrolling(add(section, "div", "view"), "the graph");
    view.innerHTML = data.graph;
    const svg = view.querySelector("svg");
    const natural = POINT * svg.viewBox.baseVal.width;
    let fitting = false;
    const size = () => {
      svg.style.width = `${fitting ? Math.min(natural, view.clientWidth) : natural}px`;
      fit.setAttribute("aria-pressed", fitting);
      fit.hidden = !fitting && view.scrollWidth <= view.clientWidth;
    };
    fit.addEventListener("click", (event) => {
      event.stopPropagation();
      fitting = !fitting;
      size();
    });
    new ResizeObserver(size).observe(view);
    size();
    const tops = [...svg.querySelectorAll(".node[data-key]")]
      .filter(({ dataset }) => data.units[dataset.key]?.group)
      .map((node) => node.getBoundingClientRect())
      .sort((a, b) => a.top - b.top);
    const { left, right } = view.getBoundingClientRect();
    if (tops.length) view.scrollLeft = (tops[0].left + tops[0].right - left - right) / 2; // the first operator
    return view;
  }

  function sourcePane({ title, lines, marked }, number) {
    const section = add(panes, "section");
    add(section, "h4").textContent = title;
    const code = add(scrolling(add(section, "div", "source"), title), "div", "code");
    const names = marked.length ? new RegExp(`\\b(${marked.join("|")})\\b`) : null;
    let run = null;
    return lines.map(([text, label, units, letter]) => {
      if (run?.dataset.label !== label) {
        run = add(code, "div", label ? "run" : "");
        run.dataset.label = label;
        if (label) {
          run.tabIndex = 0;
          run.setAttribute("role", "group");
          run.setAttribute("aria-label", `lines of group ${groups.get(label).title}`);
          run.style.setProperty("--fill", groups.get(label).fill);
          run.style.setProperty("--edge", groups.get(label).line);
        }
      }
      const element = add(run, "span", "line");
      add(element, "span", "label").textContent = label ? `${label}${letter}` : "";
      const words = add(element, "span", text.trimStart().startsWith("#") ? "comment" : "");
      const pieces = names ? text.split(names) : [text];
      pieces.forEach((piece, i) => { add(words, i % 2 ? "u" : "span").textContent = piece; });
      return { element, label, units, text, number };
    });
  }

  function storedTable() {
    const table = add(root, "table", "stored");
    for (const [name, before, after] of data.stored) {
      const row = add(table, "tr");
      for (const words of [name, `${before} → ${after}`]) add(row, "td").textContent = words;
    }
  }

  // A shape of the graph: which group or unit it is; of an edge, both of its ends.
  function known(shape) {
    const { key } = shape.dataset;
    const name = key.replace(/^cluster_/, "");
    const isGroup = shape.classList.contains("cluster");
    const label = labels.get(isGroup ? name.split("_")[0] : data.units[key]?.group) ?? "";
    if (isGroup) {
      shape.setAttribute("tabindex", "0");
      shape.setAttribute("role", "button");
      shape.setAttribute("aria-label", `group ${groups.get(label).title}`);
    }
    return { shape, key, label, isGroup, ends: key.includes("->") ? key.split("->") : null };
  }

  // Whether a line belongs to a group: several groups share the lines of a function.
  function isOf(line, label) {
    return line.label === label || line.units.some((unit) => labels.get(data.units[unit]?.group) === label);
  }

  // Light what is chosen: {label, unit, name}. `from` is where the reader is, and does not move.
  function light(choice, from) {
    root.classList.toggle("choosing", Boolean(choice));
    const { label, unit, name } = choice ?? {};
    const word = name ? new RegExp(`\\b${name}\\b`) : null;
    const near = new Set(unit ? [unit] : []);
    for (const { shape, ends } of shapes) {
      if (!ends) continue;
      const touches = unit ? ends.includes(unit) : ends.some((end) => labels.get(data.units[end]?.group) === label);
      shape.classList.toggle("lit", Boolean(choice) && touches);
      if (unit && touches) ends.forEach((end) => near.add(end));
    }
    for (const { shape, key, label: own, isGroup, ends } of shapes) {
      if (ends) continue;
      const lit = (label && own === label) || (!isGroup && near.has(key));
      shape.classList.toggle("lit", Boolean(choice && lit));
      shape.classList.toggle("strong", Boolean(unit) && key === unit);
    }
    for (const line of lines) {
      const strong = Boolean(unit && line.units.includes(unit)) || Boolean(word?.test(line.text));
      line.element.classList.toggle("lit", Boolean(choice) && (strong || Boolean(label && isOf(line, label))));
      line.element.classList.toggle("strong", strong);
    }
    said.textContent = choice ? inWords(choice) : HINT;
    if (!choice) return;
    for (const number of data.listings.keys()) {
      const own = lines.filter((line) => line.number === number);
      const first = own.find(({ element }) => element.classList.contains("strong"))
        ?? own.find(({ element }) => element.classList.contains("lit"));
      if (first && !first.element.closest(".source").contains(from)) reveal(first.element, ".source");
    }
    if (view && !view.contains(from)) {
      const shape = shapes.find(({ shape }) => shape.classList.contains("strong"))
        ?? shapes.find(({ label: own, isGroup }) => isGroup && own === label);
      if (shape) reveal(shape.shape, ".view");
    }
  }

  function inWords({ label, unit, name }) {
    const parts = [];
    if (unit) parts.push([data.units[unit]?.words, data.units[unit]?.facts].filter(Boolean).join(": "));
    if (label) parts.push(`group ${groups.get(label).title}`);
    const count = lines.filter(({ element, number }) =>
      number === data.listings.length - 1 && element.classList.contains(unit || name ? "strong" : "lit")).length;
    parts.push(`${count} ${count === 1 ? "line" : "lines"}`);
    return parts.filter(Boolean).join(" · ");
  }

  // What an element of the page means.
  function meant(element) {
    const line = lines.find((line) => line.element === element.closest?.(".line"));
    if (line) return line.label ? { label: line.label, unit: line.units[0] } : null;
    const run = element.closest?.(".run");
    if (run) return { label: run.dataset.label };
    const shape = shapes.find(({ shape }) => shape === element.closest?.("[data-key]"));
    if (!shape || shape.ends) return null;
    return shape.isGroup
      ? { label: shape.label }
      : { label: shape.label, unit: shape.key, name: data.units[shape.key]?.name };
  }

  let pinned = null; // by a tap or a click
  let focused = null;
  const settle = (from) => light(focused ?? pinned, from);
  root.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const choice = meant(event.target);
    if (choice) light(choice, event.target);
    else settle(event.target);
  });
  root.addEventListener("pointerleave", (event) => settle(event.target));
  root.addEventListener("click", (event) => {
    const choice = meant(event.target);
    const again = choice && JSON.stringify(choice) === JSON.stringify(pinned);
    pinned = again ? null : choice;
    focused = null;
    light(pinned, event.target);
  });
  root.addEventListener("focusin", (event) => {
    if (!event.target.matches(":focus-visible")) return;
    focused = meant(event.target);
    settle(event.target);
  });
  root.addEventListener("focusout", (event) => {
    focused = null;
    settle(event.target);
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      pinned = focused = null;
      light(null);
    }
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const own = meant(event.target);
    if (!step || !own?.label) return;
    event.preventDefault();
    const units = [...new Set(lines.filter((line) => isOf(line, own.label)).flatMap(({ units }) => units)
      .filter((unit) => labels.get(data.units[unit]?.group) === own.label))];
    const place = units.indexOf(focused?.unit) + step;
    focused = place < 0 || place >= units.length ? own : { label: own.label, unit: units[place] };
    settle(event.target);
  });
  light(null);
}

// Scroll a pane, and nothing around it, until an element is seen.
function reveal(element, pane) {
  const around = element.closest(pane);
  const [inner, outer] = [element.getBoundingClientRect(), around.getBoundingClientRect()];
  if (inner.top < outer.top || Math.min(inner.bottom, inner.top + outer.height / 2) > outer.bottom) {
    around.scrollTop += inner.top - outer.top - outer.height / 4;
  }
  if (pane === ".view" && (inner.left < outer.left || inner.right > outer.right)) {
    around.scrollLeft += (inner.left + inner.right) / 2 - (outer.left + outer.right) / 2;
  }
}

function scrolling(element, title) {
  element.tabIndex = 0; // so that keys can scroll it
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", title);
  return element;
}

function add(parent, kind, name = "") {
  const element = document.createElement(kind);
  if (name) element.className = name;
  parent.append(element);
  return element;
}

// Bring all new pictures of a page to life.
function programsAll(page) {
  for (const root of page.querySelectorAll("[data-needle-program]")) {
    const packed = root.dataset.needleProgram;
    delete root.dataset.needleProgram; // the next script of the page leaves this one alone
    unpackProgram(packed).then((data) => program(root, data));
  }
}

async function unpackProgram(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
