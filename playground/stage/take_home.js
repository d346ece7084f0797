// What you can take home: files that the server makes, and a picture that is made here.

import { theme } from "./colours.js";
import { element } from "./words.js";

const FILES = {
  weights: "Weights and settings",
  script: "Python script",
  notebook: "Notebook",
  gif: "GIF of the training",
};
const WAITING = "making it …";

export class TakeHome {
  constructor(stage) {
    this.stage = stage;
    this.menu = document.querySelector("#take-home");
    const file = element("input", { type: "file", accept: ".safetensors", data: { file: "run" } });
    file.onchange = async () => {
      const [run] = file.files;
      if (stage.admits(run, "run", "it is no run of the playground.")) stage.connection.sendFile(await run.arrayBuffer());
      file.value = "";
      this.menu.hidePopover();
    };
    this.menu.append(
      ...Object.entries(FILES).map(([what, words]) => this.#item(what, words, () => this.#fetch(what))),
      this.#item("picture", "Picture (PNG)", () => this.#savePicture()),
      element("label", { className: "item" }, "Import a run …", file));
  }

  #item(what, words, act) {
    const status = element("span");
    const button = element("button", { className: "item", data: { take: what } }, words, status);
    button.onclick = async () => {
      status.textContent = WAITING;
      button.disabled = true;
      try {
        await act();
        this.menu.hidePopover();
      } catch (error) {
        this.stage.tell(error.message, "error");
      }
      status.textContent = "";
      button.disabled = false;
    };
    return button;
  }

  async #fetch(what) {
    const { name, mime, arrays } = await this.stage.connection.ask(what);
    save(new Blob([arrays.file], { type: mime }), name);
  }

  // The network and the plane side by side, as they are on the page.
  async #savePicture() {
    const canvases = ["network", "plane"].map((name) => document.querySelector(`[data-canvas=${name}]`));
    const margin = 24;
    const height = Math.max(...canvases.map((canvas) => canvas.height)) + 2 * margin;
    const width = canvases.reduce((sum, canvas) => sum + canvas.width + margin, margin);
    const sheet = new OffscreenCanvas(width, height);
    const pen = sheet.getContext("2d");
    pen.fillStyle = theme.paper;
    pen.fillRect(0, 0, width, height);
    let left = margin;
    for (const canvas of canvases) {
      pen.drawImage(canvas, left, (height - canvas.height) / 2);
      if (canvas.dataset.canvas === "network") this.#copyTiles(pen, canvas, left, (height - canvas.height) / 2);
      left += canvas.width + margin;
    }
    save(await sheet.convertToBlob({ type: "image/png" }), "playground.png");
  }

  // The inputs are buttons beside the canvas: their pictures and names are copied to where they lie.
  #copyTiles(pen, canvas, left, top) {
    const box = canvas.getBoundingClientRect();
    const ratio = canvas.width / box.width;
    pen.fillStyle = theme.ink;
    pen.font = theme.font(12 * ratio);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tile of document.querySelectorAll(".tile[aria-pressed=true]")) {
      const picture = tile.querySelector("img");
      const at = picture.getBoundingClientRect();
      const [x, y, size] = [left + (at.left - box.left) * ratio, top + (at.top - box.top) * ratio, at.width * ratio];
      pen.drawImage(picture, x, y, size, size);
      pen.fillText(tile.textContent, x - 6 * ratio, y + size / 2);
    }
  }
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
