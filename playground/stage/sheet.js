// On a narrow screen: the sheet of controls, which comes from below and leaves the plane in sight.

import { isNarrow } from "./menus.js";

const sheet = document.querySelector("#sheet");
const button = document.querySelector("[data-do=controls]");

export function toggleSheet(isOpen = !document.documentElement.classList.contains("sheet-open")) {
  document.documentElement.classList.toggle("sheet-open", isOpen);
  button.ariaExpanded = String(isOpen);
  if (isOpen) document.querySelector(".plane").scrollIntoView({ block: "start" });
}

export function buildSheet() {
  const tabs = [...sheet.querySelectorAll(".tabs [data-tab]")];
  for (const tab of tabs) {
    tab.onclick = () => {
      sheet.dataset.tab = tab.dataset.tab;
      for (const other of tabs) other.ariaPressed = String(other === tab);
    };
  }
  isNarrow.addEventListener("change", () => toggleSheet(false));
}
