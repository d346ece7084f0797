// The two classes' colours, and everything that follows from the page's theme.

const SHADES = 512;

export let theme = null;

// Reads the theme now, and again whenever the system goes from light to dark, or the page to larger letters.
export function followTheme(onChange) {
  const read = () => {
    theme = readTheme();
    onChange();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", read);
  addEventListener("resize", () => letters() !== theme.scale && read());
  read();
}

// How large the page's letters are: 1 is the size for which canvases are laid out.
function letters() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 14;
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const [paper, positive, negative] = ["--paper", "--positive", "--negative"].map((name) => channels(read(name)));
  const shade = (value) => {
    const colour = value < 0 ? negative : positive;
    const share = 0.62 * Math.abs(value) ** 0.9; // never a point's own colour: points must stay visible
    return mixed(colour, paper, share);
  };
  const scale = letters();
  return {
    paper: read("--paper"), ink: read("--ink"), muted: read("--muted"), edge: read("--edge"), grid: read("--grid"),
    scale, font: (size, kind = "") => `${kind} ${size * scale}px ${style.fontFamily}`,
    positive: rgb(positive), negative: rgb(negative),
    labelled: (label) => rgb(mixed(label < 0 ? negative : positive, paper, 0.25 + 0.75 * Math.abs(label))),
    shades: palette(SHADES + 1, (i) => shade((2 * i) / SHADES - 1)),
    discreteShades: palette(SHADES + 1, (i) => shade(i < SHADES / 2 ? -0.8 : 0.8)),
    smallShades: palette(256, (i) => shade(Math.max(-1, (i - 128) / 127))), // for whole numbers from -127 to 127
  };
}

// Where a value from -1 to 1 has its shade. What is no number is shown as 0.
export function shadeOf(value) {
  if (value !== value) return SHADES / 2;
  return ((value < -1 ? -1 : value > 1 ? 1 : value) * 0.5 + 0.5) * SHADES + 0.5 | 0;
}

// A point's colour by its label: two classes, or anything between them.
export function labelColour(label) {
  if (label >= 1) return theme.positive;
  if (label <= -1) return theme.negative;
  return theme.labelled(label);
}

function palette(count, shade) {
  const words = new Uint32Array(count); // one RGBA word each, as an image has them
  const bytes = new Uint8Array(words.buffer);
  for (let i = 0; i < count; i++) bytes.set([...shade(i).map(Math.round), 255], 4 * i);
  return words;
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mixed(colour, other, share) {
  return colour.map((channel, i) => channel * share + other[i] * (1 - share));
}

function rgb(colour) {
  return `rgb(${colour.map(Math.round).join(" ")})`;
}
