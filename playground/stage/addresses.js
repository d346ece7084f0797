// The address at which this tab last saw each page, so that links lead back to what was there.

const KEPT = "needle-addresses"; // in sessionStorage: what begins with "?", by the last part of the page's path

const read = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
const keep = () => sessionStorage.setItem(KEPT, JSON.stringify({ ...read(), [nameOf(location)]: location.search }));
const nameOf = ({ pathname }) => pathname.split("/").at(-1);

let untold = read();
window.navigation?.addEventListener("currententrychange", keep);
addEventListener("pagehide", keep);

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
