// The page's address: what is written and chosen, under the same names as in the app. Defaults are left out.

const LONGEST_SHOWN = 30; // characters of a value that isn't possible

// What can be written and chosen, and the defaults. `choices` is what Python has.
export function entriesOf({ examples, views, styles, directions, most_characters }) {
  const oneOf = (options) => (value) => (Object.hasOwn(options, value) ? "" : `one of ${Object.keys(options).join(", ")}`);
  const short = (value) => {
    const count = [...value].length;
    if (count <= most_characters) return "";
    return `at most ${most_characters.toLocaleString("en")} characters, and there are ${count.toLocaleString("en")}`;
  };
  return {
    text: { otherwise: Object.values(examples)[0], problem: short },
    view: { otherwise: "forward", problem: oneOf(views) },
    style: { otherwise: "auto", problem: oneOf(styles) },
    rankdir: { otherwise: "LR", problem: oneOf(directions) },
  };
}

// The state that the address holds, and a sentence about what isn't possible in it.
export function readAddress(entries) {
  const query = new URLSearchParams(location.search);
  const state = {};
  const problems = [];
  for (const [name, { otherwise, problem }] of Object.entries(entries)) {
    const given = query.get(name) ?? otherwise;
    const why = problem(given);
    state[name] = why ? otherwise : given;
    if (why) problems.push(`${name}=${given.length > LONGEST_SHOWN ? `${given.slice(0, LONGEST_SHOWN)}…` : given} (${why})`);
  }
  const used = problems.length > 1 ? "the defaults are used" : "the default is used";
  const said = problems.length ? `The page's address has ${problems.join(" and ")}: that isn't possible, so ${used}.` : "";
  return { state, said };
}

export function writeAddress(entries, state) {
  const query = new URLSearchParams();
  for (const [name, { otherwise, problem }] of Object.entries(entries)) {
    if (state[name] !== otherwise && !problem(state[name])) query.set(name, state[name]);
  }
  const search = query.size ? `?${query}` : "";
  if (search !== location.search) history.pushState(null, "", location.pathname + search);
}
