// Puts a piece of HTML into the page, with its scripts: those that come as text do not run, those that are made do.
export function putHtml(place, html) {
  place.innerHTML = html;
  for (const script of place.querySelectorAll("script")) {
    const running = document.createElement("script");
    for (const { name, value } of script.attributes) running.setAttribute(name, value);
    running.textContent = script.textContent;
    script.replaceWith(running);
  }
}
