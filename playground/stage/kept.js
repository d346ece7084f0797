// What the browser keeps for this page, as text. A private window may forbid even to look: then nothing is kept.

export function kept(storage, name) { // storage: "sessionStorage" or "localStorage"
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

// Returns whether it is kept.
export function keep(storage, name, text) {
  try {
    window[storage].setItem(name, text);
    return true;
  } catch { // or there is no room
    return false;
  }
}
