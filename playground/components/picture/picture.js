// Puts a picture that lives into the page: a piece of HTML with its scripts.
//
// Streamlit calls this again whenever the element is sent again; the same picture then stays as one left it.
const shown = new WeakMap();

export default function ({ parentElement, data }) {
  const place = parentElement.querySelector(".picture");
  if (shown.get(place) === data) return;
  shown.set(place, data);
  place.innerHTML = data;
  for (const script of place.querySelectorAll("script")) {
    // A script that comes as text does not run; one that is made does.
    const running = document.createElement("script");
    for (const { name, value } of script.attributes) running.setAttribute(name, value);
    running.textContent = script.textContent;
    script.replaceWith(running);
  }
}
