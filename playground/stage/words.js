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

export function element(tag, properties = {}, ...children) {
  const { data = {}, ...rest } = properties;
  const made = Object.assign(document.createElement(tag), rest);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}
