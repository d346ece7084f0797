// What opens below a button: the pages, the lessons, a link to share, and what you can take home; and more controls.

import { openAt } from "./editors.js";

export const isNarrow = matchMedia("(max-width: 860px)");

export function buildMenus() {
  // On a wide screen the pages lie side by side.
  const follow = () => {
    document.querySelector("#pages").popover = isNarrow.matches ? "auto" : null;
  };
  isNarrow.addEventListener("change", follow);
  follow();
  for (const button of document.querySelectorAll("[data-opens]")) {
    const menu = document.getElementById(button.dataset.opens);
    button.popoverTargetElement = menu;
    menu.addEventListener("beforetoggle", ({ newState }) => button.setAttribute("aria-expanded", newState === "open"));
    menu.addEventListener("toggle", ({ newState }) => {
      const { left, bottom } = button.getBoundingClientRect();
      if (newState === "open") openAt(menu, left, bottom + 4);
    });
  }
}

// While their place is out of sight, the buttons of the training stay at the window's lower edge.
export function keepTransport() {
  const follow = ([{ isIntersecting }]) => document.documentElement.classList.toggle("scrolled", !isIntersecting);
  new IntersectionObserver(follow).observe(document.querySelector(".status"));
}

// More controls get a row of their own, so that they cover nothing.
export function toggleMore() {
  const isOpen = document.documentElement.classList.toggle("more-open");
  document.querySelector("[data-do=more]").ariaExpanded = String(isOpen);
}
