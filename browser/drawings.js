// Puts a picture of `viz` into a page whose policy runs no script that is written into it: the same scripts are
// modules here.

import { start } from "./viz/drawing.js";
import { playAll } from "./viz/step.js";

const look = fetch(new URL("viz/drawing.css", import.meta.url)).then((answer) => answer.text());

export async function putPicture(place, html) {
  const css = await look;
  place.innerHTML = html;
  for (const { dataset } of place.querySelectorAll("[data-needle-drawing]")) start(dataset.needleDrawing, css);
  playAll(place);
}
