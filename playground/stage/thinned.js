// For what must not happen too often.

// Calls at most once in a while, and always with the last value. Its `now` calls at once: nothing waits after it.
export function thinned(call, period) {
  let timer = null;
  let waiting = null; // what it is to be called with next
  const run = (...given) => {
    if (timer) {
      waiting = given;
      return;
    }
    call(...given);
    waiting = null;
    timer = setTimeout(() => {
      timer = null;
      if (waiting) run(...waiting);
    }, period);
  };
  run.now = (...given) => {
    clearTimeout(timer);
    timer = null;
    run(...given);
  };
  return run;
}
