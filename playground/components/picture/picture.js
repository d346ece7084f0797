// Puts a picture that lives into the page: a piece of HTML with its scripts. `putHtml` stands before it.
//
// Streamlit calls this again whenever the element is sent again; the same picture then stays as one left it.
const shown = new WeakMap();

export default function ({ parentElement, data }) {
  const place = parentElement.querySelector(".picture");
  if (shown.get(place) === data) return;
  shown.set(place, data);
  putHtml(place, data);
}
