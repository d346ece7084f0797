// The address at which this tab last saw each page, so that links lead back to what was there.

import { keep, kept } from "./kept.js";

const KEPT = "needle-addresses"; // in sessionStorage: what begins with "?", by the last part of the page's path

const read = () => JSON.parse(kept("sessionStorage", KEPT)) ?? {};
const keepAddress = () => keep("sessionStorage", KEPT, JSON.stringify({ ...read(), [nameOf(location)]: location.search }));
const nameOf = ({ pathname }) => pathname.split("/").at(-1);

let untold = read();
window.navigation?.addEventListener("currententrychange", keepAddress);
addEventListener("pagehide", keepAddress);

// Let links lead back, now and whenever their page is shown again.
export function leadBack(links) {
  const lead = () => {
    for (const link of links) link.search = read()[nameOf(link)] ?? "";
  };
  lead();
  addEventListener("pageshow", lead);
}

// Where Python makes the links, it is told once what was kept before this document.
export function tell(setStateValue) {
  const kept = untold;
  untold = {};
  if (Object.keys(kept).length) window.sayOnArrival(() => setStateValue("kept", kept));
}
