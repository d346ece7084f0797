// The elements of an array above, the cells of its memory below. Point at either to find the other.

class Memory {
  constructor(root, say) {
    this.root = root;
    this.rest = () => say("index", this.index);
    for (const kind of ["pointerover", "focusin", "click"]) {
      root.addEventListener(kind, (event) => {
        const cell = event.target.closest("button");
        if (!cell) return;
        this.follow(cell);
        if (kind === "click") this.rest();
      });
    }
    root.addEventListener("keydown", (event) => this.step(event));
  }

  show(data) {
    this.data = data;
    const { shape, strides, offset, storage, uses } = data;
    this.elements = [];
    const cell = (kind, label, value, below) =>
      `<button class="${kind}" aria-label="${label}"><span>${written(value)}</span><small>${below}</small></button>`;
    const indices = shape.reduce((found, length) => found.flatMap((index) =>
      Array.from({ length }, (_, i) => [...index, i])), [[]]);
    const columns = shape.at(-1) ?? 1;
    const rows = shape.at(-2) ?? 1;
    const panels = new Map();
    for (const index of indices) {
      const name = index.slice(0, -2).join(", ");
      if (!panels.has(name)) panels.set(name, "");
      const position = this.placeOf(index);
      this.elements.push({ index, position });
      panels.set(name, panels.get(name) + cell("element", `element [${index.join(", ")}]: ${written(storage[position])}, at position ${position}`, storage[position], `@${position}`));
    }
    const matrices = [...panels].map(([name, cells]) => `
      <figure>${shape.length > 2 ? `<figcaption>[${name}]</figcaption>` : ""}
        <div class="matrix" style="grid-template-columns: repeat(${columns}, var(--cell))" data-rows="${rows}">${cells}</div>
      </figure>`).join("");
    const cells = storage.map((value, i) => cell(uses[i] ? "read" : "unread",
      `position ${i}: ${written(value)}, read by ${uses[i]} ${uses[i] === 1 ? "index" : "indices"}`, value, i)).join("");
    this.root.innerHTML = `
      <section><h3>The array: what each index reads</h3><div class="matrices">${matrices || "no elements"}</div></section>
      <p class="formula" aria-live="polite"></p>
      <section><h3>The memory: ${storage.length} cells, ${uses.filter(Boolean).length} of them read</h3>
        <div class="strip">${cells}</div></section>`;
    this.elementCells = [...this.root.querySelectorAll(".matrix button")];
    this.storageCells = [...this.root.querySelectorAll(".strip button")];
    if (uses.length > offset && shape.length) this.storageCells[offset].classList.add("offset");
    this.select(this.at(data.start) ?? this.elements[0]);
  }

  placeOf(index) {
    return this.data.strides.reduce((sum, stride, axis) => sum + stride * index[axis], this.data.offset);
  }

  at(index) {
    return this.elements.find((one) => one.index.join() === index.join());
  }

  follow(cell) {
    const place = this.elementCells.indexOf(cell);
    if (place >= 0) return this.select(this.elements[place]);
    const position = this.storageCells.indexOf(cell);
    const reading = this.elements.filter((one) => one.position === position);
    if (reading.length) return this.select(reading[0], reading);
    this.mark(position, []);
    this.tell(`No index reads position ${position}.`);
  }

  // Show an element and its cell of memory; `reading` are all elements that read this cell, if it was asked for.
  select(chosen, reading = null) {
    if (!chosen) return;
    this.index = chosen.index;
    this.mark(chosen.position, reading ?? [chosen]);
    const { strides, offset } = this.data;
    const brackets = ({ index }) => `[${index.join(", ")}]`;
    const terms = strides.map((stride, axis) => ` + ${chosen.index[axis]} · ${written(stride)}`).join("");
    const sum = `offset${strides.length ? " + Σ index · stride" : ""} = ${offset}${terms} = ${chosen.position}`;
    const others = (reading?.length ?? 0) > 6 ? ` and ${reading.length - 6} more` : "";
    this.tell(reading
      ? `Position ${chosen.position} is read by ${reading.slice(0, 6).map(brackets).join(", ")}${others}:  ${sum}`
      : `${brackets(chosen)} is at position  ${sum}`);
  }

  mark(position, elements) {
    for (const cell of this.root.querySelectorAll(".chosen")) cell.classList.remove("chosen");
    this.storageCells[position]?.classList.add("chosen");
    for (const one of elements) this.elementCells[this.elements.indexOf(one)].classList.add("chosen");
  }

  tell(words) {
    this.root.querySelector(".formula").textContent = words;
  }

  // The arrows go from element to element, and from cell to cell.
  step(event) {
    const cell = event.target.closest("button");
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (!cell || (!dx && !dy)) return;
    const cells = this.elementCells.includes(cell) ? this.elementCells : this.storageCells;
    const across = cells === this.elementCells ? this.data.shape.at(-1) ?? 1 : 10;
    cells[cells.indexOf(cell) + dx + across * dy]?.focus();
    event.preventDefault();
  }

  close() {}
}

export default lasting(Memory);
