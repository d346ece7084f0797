// A link to what is on the page, and the choice of the controls that it does without.

import { capital, element } from "./words.js";

export class Sharing {
  constructor(stage) {
    this.stage = stage;
    this.menu = document.querySelector("#share");
  }

  build() {
    const { stage } = this;
    const { fields, hideable } = stage.welcome;
    this.link = element("input", { id: "link", readOnly: true });
    this.link.onfocus = () => this.link.select();
    const copy = element("button", { textContent: "Copy link" });
    copy.onclick = async () => {
      this.link.select();
      if (navigator.clipboard) await navigator.clipboard.writeText(this.link.value);
      else document.execCommand("copy"); // where the page came without encryption
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy link"; }, 2000);
    };
    this.remark = element("p");
    this.boxes = Object.fromEntries(hideable.map((name) => {
      const box = element("input", { type: "checkbox", data: { hides: name } });
      box.onchange = () => stage.set({ hide: hideable.filter((other) => this.boxes[other].checked).join(",") });
      return [name, box];
    }));
    const names = hideable.map((name) => element("label", {}, this.boxes[name],
      capital(fields[name]?.label ?? name.replaceAll("_", " "))));
    const all = element("button", { textContent: "Show all again" });
    all.onclick = () => stage.set({ hide: "" });
    this.menu.replaceChildren(
      element("label", { htmlFor: "link", textContent: "A link to what you see now" }),
      element("div", { className: "link" }, this.link, copy),
      this.remark,
      element("details", {}, element("summary", { textContent: "Hide controls …" }),
        element("p", { textContent: "Tick what your class does not need. The link remembers it." }),
        element("div", { className: "names" }, ...names), all));
  }

  show() {
    const { address, remark } = this.stage.scene;
    this.link.value = new URL(address || location.pathname, location.href).href;
    this.remark.textContent = remark ?? "";
    this.remark.hidden = !remark;
    for (const [name, box] of Object.entries(this.boxes)) box.checked = this.stage.hides(name);
  }
}
