// Pages of the site load this: what they need is kept, so that a second visit works without a network.

const site = new URL(".", import.meta.url);

// Resolves when what the page loads from now on is kept, or when that isn't possible here.
export const kept = (async () => {
  const { serviceWorker } = navigator; // there is none in a private window of some browsers, or without https
  if (!serviceWorker) return;
  try {
    await serviceWorker.register(new URL("service-worker.js", site));
    const { active } = await serviceWorker.ready;
    const keepLoaded = () => {
      const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
      active.postMessage([location.href.split("#")[0], ...loaded]);
    };
    keepLoaded(); // what came before it was there
    if (!serviceWorker.controller) {
      await new Promise((claimed) => {
        serviceWorker.addEventListener("controllerchange", claimed, { once: true });
        setTimeout(claimed, 2000);
      });
      keepLoaded();
    }
  } catch {
    // The page works without it, with a network.
  }
})();
