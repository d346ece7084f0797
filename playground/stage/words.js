// Numbers as people write them, and small helpers for text in the page.

export function minus(value) {
  return String(value).replace("-", "−");
}

export function signed(value, digits) {
  return (value > 0 ? "+" : "") + minus(value.toFixed(digits));
}

export function grouped(value) {
  return value.toLocaleString("en");
}

export function shortNumber(value) {
  if (value >= 1e7) return value.toExponential(0).replace("+", "");
  if (value >= 10000) return `${+(value / 1000).toPrecision(3)}k`;
  const isTiny = value !== 0 && Math.abs(value) < 0.001;
  return minus(isTiny ? value.toExponential(0) : +value.toPrecision(2));
}

export function percent(share) {
  return `${+(100 * share).toFixed(1)} %`;
}

export function capital(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

// Changes text only where it differs: writing the same would cost a layout.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Gives a place these children. Those that stay are left alone: a press on one of them still becomes a click.
export function keepChildren(place, children) {
  for (const old of [...place.children]) if (!children.includes(old)) old.remove();
  children.forEach((child, i) => {
    if (place.children[i] !== child) place.insertBefore(child, place.children[i] ?? null);
  });
}

export function element(tag, properties = {}, ...children) {
  const { data = {}, ...rest } = properties;
  const made = Object.assign(document.createElement(tag), rest);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}
